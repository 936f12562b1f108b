package reeveworker

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	reevev1 "reeve.example/gen/reeve/v1"
)

// What the worker does where no server is needed to see it. `go test ./...`

const patience = 10 * time.Second

func newWorker(handler Handler) *Worker {
	w := &Worker{Handlers: map[string]Handler{"k": handler}}
	w.prepare()
	return w
}

// offered is the task of a claim that has just come.
func offered(w *Worker, epoch int64) *Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	claims := []*reevev1.Claim{{TaskId: "t", Generation: 1, Epoch: epoch, ActionKind: "k"}}
	w.hear(&reevev1.WorkResponse{Frame: &reevev1.WorkResponse_Claims{Claims: &reevev1.Claims{Claims: claims}}})
	w.changed()
	return w.tasks["t"]
}

// judged: everything through `through` is judged, and the events of those numbers were refused.
func judged(w *Worker, t *Task, through int64, reason reevev1.ErrorReason, refused ...int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seq := range refused {
		rejected := []*reevev1.RejectedEvent{{EventSeq: seq, Refusal: &reevev1.Refusal{Reason: reason}}}
		w.judge(&reevev1.TaskVerdict{TaskId: "t", Epoch: t.Claim.Epoch, JudgedThrough: through, Rejected: rejected})
	}
	w.changed()
}

func await(t *testing.T, w *Worker, what string, holds func() bool) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waitFor(holds, patience)
	if !holds() {
		t.Fatalf("waited for %s", what)
	}
}

type noText struct{}

func (noText) Error() string { panic("no text") }

func TestEveryClaimGetsAnEnding(t *testing.T) {
	returning := func(err error) Handler {
		return func(context.Context, *Task) (any, error) { return nil, err }
	}
	for name, it := range map[string]struct {
		handler       Handler
		code, message string
		retryable     bool
	}{
		"bytes":       {returning(errors.New("bad \xff bytes")), "handler_error", "bad \uFFFD bytes", true},
		"code":        {returning(&Failure{Code: "c\xff", Message: "m\xff"}), "c\uFFFD", "m\uFFFD", false},
		"long code":   {returning(&Failure{Code: strings.Repeat("é", 100), Message: "m"}), strings.Repeat("é", 64), "m", false},
		"long text":   {returning(&Failure{Code: "c", Message: strings.Repeat("€", 9000)}), "c", strings.Repeat("€", 2730), false},
		"no code":     {returning(&Failure{Message: "m"}), "handler_error", "m", false},
		"nil failure": {returning((*Failure)(nil)), "handler_error", "panic: ", true},
		"no text":     {returning(noText{}), "handler_error", "panic: no text", true},
		"made up":     {returning(ErrDraining), "handler_error", ErrDraining.Error(), true},
		"panic":       {func(context.Context, *Task) (any, error) { panic("p\xff") }, "handler_error", "panic: p\uFFFD", true},
		"exit":        {func(context.Context, *Task) (any, error) { runtime.Goexit(); return nil, nil }, "handler_error", "", true},
		"result":      {func(context.Context, *Task) (any, error) { return make(chan int), nil }, "handler_error", "json", true},
		"raw": {func(context.Context, *Task) (any, error) { return json.RawMessage("\"\xff\""), nil },
			"event_unsayable", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorker(it.handler)
			task := offered(w, 1)
			await(t, w, "the ending", func() bool { return task.phase == settling && !task.running })
			ending := task.events[len(task.events)-1]
			if _, err := proto.Marshal(ending); err != nil {
				t.Fatal(err)
			}
			told := ending.GetFailed().GetError()
			if told.GetCode() != it.code || !strings.HasPrefix(told.GetMessage(), it.message) || told.GetRetryable() != it.retryable {
				t.Errorf("it ended with %v", ending)
			}
		})
	}
}

func TestATaskThatComesAgainWaitsForItsOldHandler(t *testing.T) {
	running, most, goOn := 0, 0, make(chan struct{})
	var w *Worker
	w = newWorker(func(context.Context, *Task) (any, error) {
		count := func(by int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if running += by; running > most {
				most = running
			}
		}
		count(1)
		defer count(-1)
		<-goOn
		return nil, nil
	})
	first := offered(w, 1)
	await(t, w, "the first handler", func() bool { return running == 1 })
	second := offered(w, 2)
	third := offered(w, 3)
	await(t, w, "the end of the second", func() bool { return !second.running })
	if first.phase != over || third.lastSeq != 1 || len(w.strays) != 1 {
		t.Errorf("%v, %v events, %v strays", first.phase, third.lastSeq, len(w.strays))
	}
	goOn <- struct{}{}
	await(t, w, "the third handler", func() bool { return third.lastSeq == 2 })
	goOn <- struct{}{}
	await(t, w, "the ending", func() bool { return third.phase == settling })
	if most != 1 || len(w.strays) != 0 {
		t.Errorf("%d at once, %d strays", most, len(w.strays))
	}
}

func TestWhatWasNotJudgedRestsOnce(t *testing.T) {
	w := newWorker(func(context.Context, *Task) (any, error) { return nil, nil })
	task := offered(w, 1)
	await(t, w, "the ending", func() bool { return task.phase == settling })
	task.sentThrough = task.lastSeq
	judged(w, task, 0, reevev1.ErrorReason_ERROR_REASON_EVENT_GAP, 2, 3)
	if task.repeats.last != firstRepeat {
		t.Errorf("two pauses at once: %v", task.repeats.last)
	}
	await(t, w, "its return", func() bool { return !task.resting && task.sentThrough == 0 })
	judged(w, task, 1, reevev1.ErrorReason_ERROR_REASON_EVENT_GAP, 2)
	if task.repeats.last != firstRepeat {
		t.Errorf("what was judged did not end the growth: %v", task.repeats.last)
	}
}

func TestPausesGrow(t *testing.T) {
	growing := pauses{first: time.Second}
	for _, longest := range []time.Duration{1, 2, 4, 5, 5} {
		if pause := growing.next(0); pause < longest*time.Second/2 || pause > longest*time.Second {
			t.Errorf("%v where %d s is the longest", pause, longest)
		}
	}
	if pause := growing.next(time.Minute); pause < time.Minute {
		t.Errorf("%v, shorter than the server asked for", pause)
	}
}

func TestADrainHandsBackAResultThatWaitsForChildren(t *testing.T) {
	w := newWorker(func(context.Context, *Task) (any, error) { return nil, nil })
	w.DrainGrace = 0
	task := offered(w, 1)
	await(t, w, "the ending", func() bool { return task.phase == settling })
	judged(w, task, 3, reevev1.ErrorReason_ERROR_REASON_CHILDREN_ACTIVE, 3)
	drained := make(chan struct{})
	go func() { w.drain(); close(drained) }()
	await(t, w, "its asking once more", func() bool { return w.leaving && task.lastSeq == 4 })
	judged(w, task, 4, reevev1.ErrorReason_ERROR_REASON_CHILDREN_ACTIVE, 4)
	await(t, w, "the release", func() bool { return task.phase == releasing })
	w.mu.Lock()
	w.lose(task)
	w.changed()
	w.mu.Unlock()
	select {
	case <-drained:
	case <-time.After(patience):
		t.Error("the drain did not end")
	}
}
