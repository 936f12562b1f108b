package reeveworker

import (
	"context"
	"errors"
	"fmt"
	"log"

	"google.golang.org/protobuf/proto"

	reevev1 "reeve.example/gen/reeve/v1"
)

// What the server says, and what becomes of claims by it. All of it under w.mu, in the order of the frames.

func (w *Worker) hear(response *reevev1.WorkResponse) {
	switch frame := response.Frame.(type) {
	case *reevev1.WorkResponse_Claims:
		for _, claim := range frame.Claims.Claims {
			w.take(claim)
		}
	case *reevev1.WorkResponse_Verdicts:
		for _, verdict := range frame.Verdicts.Verdicts {
			w.judge(verdict)
		}
	case *reevev1.WorkResponse_Cancels:
		for _, notice := range frame.Cancels.Cancels {
			w.cancel(notice)
		}
	case *reevev1.WorkResponse_LeasesLost:
		for _, loss := range frame.LeasesLost.Losses {
			if t := w.held(loss.TaskId, loss.Epoch); t != nil {
				w.lose(t)
			}
		}
	case *reevev1.WorkResponse_Rejection:
		log.Printf("reeve: frame %d was refused: %s", frame.Rejection.FrameId, frame.Rejection.Refusal.GetMessage())
		if isPassing(frame.Rejection.Refusal) {
			// Events are numbered, so saying all of them again is safe.
			for _, t := range w.tasks {
				w.rest(t, frame.Rejection.Refusal)
			}
		}
	}
}

func (w *Worker) welcome(s *stream, welcome *reevev1.Welcome) {
	resumed := w.session != nil
	w.session = &reevev1.Reattach{SessionId: welcome.SessionId, SessionSecret: welcome.SessionSecret}
	if limit := int(welcome.Limits.GetMaxEventBytes()); limit > 0 {
		w.maxEventBytes = limit
	}
	if resumed {
		w.reconcile(welcome.LeasesKept)
	}
	w.stream = s
	if w.draining {
		w.sayDrain(s)
		for _, t := range w.tasks {
			if t.phase == releasing {
				s.releases = append(s.releases, t)
			}
		}
	}
	w.saySlots()
}

// reconcile: what the server kept is sent what it has not judged; everything else is lost.
func (w *Worker) reconcile(kept []*reevev1.HeldClaim) {
	marks := map[*Task]int64{}
	for _, claim := range kept {
		if t := w.held(claim.TaskId, claim.Epoch); t != nil {
			marks[t] = claim.AnsweredThrough
		}
	}
	for _, t := range w.tasks {
		through, isKept := marks[t]
		if !isKept {
			w.lose(t)
			continue
		}
		w.answered(t, through)
		if t.phase == settling && len(t.events) == 0 {
			t.asking = nil
			w.settle(t, t.ending) // judged and still ours: it was refused, and will be again
		}
		t.sayAgain()
	}
}

func (w *Worker) take(claim *reevev1.Claim) {
	if earlier := w.tasks[claim.TaskId]; earlier != nil {
		if earlier.Claim.Epoch == claim.Epoch {
			return // offered twice
		}
		w.lose(earlier)
	}
	t := &Task{Claim: claim, worker: w, repeats: pauses{first: firstRepeat}, asks: pauses{first: firstAsk}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	w.tasks[claim.TaskId] = t
	if w.draining {
		w.release(t)
		return
	}
	_ = w.say(t, &reevev1.WorkerEvent{Event: &reevev1.WorkerEvent_Accepted{Accepted: &reevev1.Accepted{}}})
	t.running = true
	go w.runHandler(t)
}

func (w *Worker) judge(verdict *reevev1.TaskVerdict) {
	t := w.held(verdict.TaskId, verdict.Epoch)
	if t == nil {
		return
	}
	w.answered(t, verdict.JudgedThrough)
	var endingRefused *reevev1.Refusal
	for _, rejected := range verdict.Rejected {
		switch reason := rejected.Refusal.GetReason(); {
		case reason == reevev1.ErrorReason_ERROR_REASON_LEASE_LOST:
			w.lose(t)
			return
		case rejected.EventSeq > t.answeredThrough: // not judged
			w.rest(t, rejected.Refusal)
		case t.phase == settling && rejected.EventSeq == t.lastSeq:
			endingRefused = rejected.Refusal
		default:
			log.Printf("reeve: event %d of %s was refused: %s", rejected.EventSeq, t.Claim.TaskId, rejected.Refusal.GetMessage())
		}
	}
	switch {
	case t.phase != settling || t.asking != nil || t.answeredThrough < t.lastSeq:
	case endingRefused == nil:
		w.forget(t)
	case isPassing(endingRefused):
		t.asking = endingRefused
		if w.leaving && t.awaitsChildren() {
			w.release(t)
			return
		}
		w.later(t.asks.next(hint(endingRefused)), t, func() { w.ask(t) })
	case !t.endingRefused:
		t.endingRefused = true
		w.settle(t, failed(&Failure{Code: "ending_refused", Message: endingRefused.Message}))
	default:
		w.forget(t)
	}
}

func (w *Worker) cancel(notice *reevev1.CancelNotice) {
	t := w.held(notice.TaskId, notice.Epoch)
	if t == nil {
		return
	}
	t.cancellationToken = notice.CancellationToken
	w.receipt(t, reevev1.ReceiptKind_RECEIPT_KIND_DELIVERED)
	if t.acknowledged {
		w.receipt(t, reevev1.ReceiptKind_RECEIPT_KIND_ACKNOWLEDGED)
	}
	t.stop(fmt.Errorf("%w: %s", ErrCancelled, notice.Reason.GetSummary()))
}

func (w *Worker) held(taskID string, epoch int64) *Task {
	if t := w.tasks[taskID]; t != nil && t.Claim.Epoch == epoch {
		return t
	}
	return nil
}

func (w *Worker) settle(t *Task, ending *reevev1.WorkerEvent) {
	t.phase, t.ending = settling, ending
	// What was said already is kept as it was, should the same be said again under another number.
	var unsayable *Failure
	if errors.As(w.say(t, proto.Clone(ending).(*reevev1.WorkerEvent)), &unsayable) {
		t.ending = failed(unsayable)
		_ = w.say(t, proto.Clone(t.ending).(*reevev1.WorkerEvent))
	}
}

// ask is for the same ending once more.
func (w *Worker) ask(t *Task) {
	if t.asking != nil {
		t.asking = nil
		w.settle(t, t.ending)
	}
}

func (t *Task) awaitsChildren() bool {
	return t.asking.GetReason() == reevev1.ErrorReason_ERROR_REASON_CHILDREN_ACTIVE
}

func (w *Worker) answered(t *Task, through int64) {
	if through > t.answeredThrough {
		t.answeredThrough = through
		t.repeats.reset()
	}
	if t.sentThrough < t.answeredThrough {
		t.sentThrough = t.answeredThrough
	}
	for len(t.events) > 0 && t.events[0].EventSeq <= through {
		w.unansweredBytes -= proto.Size(t.events[0])
		t.events = t.events[1:]
	}
}

// rest: nothing of it is sent for a while, then all that was not judged.
func (w *Worker) rest(t *Task, refusal *reevev1.Refusal) {
	if !t.resting {
		t.resting = true
		w.later(t.repeats.next(hint(refusal)), t, t.sayAgain)
	}
}

func (t *Task) sayAgain() { t.resting, t.sentThrough = false, t.answeredThrough }

func (w *Worker) lose(t *Task) {
	t.stop(ErrLeaseLost)
	w.forget(t)
}

func (w *Worker) forget(t *Task) {
	if t.phase == over {
		return
	}
	w.answered(t, t.lastSeq)
	t.phase = over
	if t.running {
		w.strays[t] = true
	}
	delete(w.tasks, t.Claim.TaskId)
	w.saySlots()
}

func (w *Worker) release(t *Task) {
	t.phase, t.asking = releasing, nil
	if w.stream != nil {
		w.stream.releases = append(w.stream.releases, t)
	}
}

// receipt: without a stream it is not missed, as the cancel comes again after the re-attach.
func (w *Worker) receipt(t *Task, kind reevev1.ReceiptKind) {
	if w.stream == nil {
		return
	}
	receipt := &reevev1.CancelReceipt{
		TaskId: t.Claim.TaskId, Generation: t.Claim.Generation, Epoch: t.Claim.Epoch,
		CancellationToken: t.cancellationToken, Kind: kind,
	}
	receipts := &reevev1.CancelReceipts{Receipts: []*reevev1.CancelReceipt{receipt}}
	w.stream.put(&reevev1.WorkRequest{Frame: &reevev1.WorkRequest_CancelReceipts{CancelReceipts: receipts}})
}

// isPassing: it may be gone when the same is said again.
func isPassing(refusal *reevev1.Refusal) bool {
	switch refusal.GetReason() {
	case reevev1.ErrorReason_ERROR_REASON_CONTENTION,
		reevev1.ErrorReason_ERROR_REASON_OVERLOADED,
		reevev1.ErrorReason_ERROR_REASON_STORE_UNAVAILABLE,
		reevev1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN,
		reevev1.ErrorReason_ERROR_REASON_CHILDREN_ACTIVE: // children end by themselves
		return true
	}
	return false
}
