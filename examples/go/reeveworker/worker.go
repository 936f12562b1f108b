// Package reeveworker is a Reeve worker over the Work stream: handlers by kind, each claim in a goroutine of its own.
//
// Copy it into your module. It keeps what the contract asks of every worker (docs/clients.md): numbers, receipts,
// heartbeats, re-attach, drain.
package reeveworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	reevev1 "reeve.example/gen/reeve/v1"
)

const (
	forever            = time.Duration(1<<63 - 1)
	maxUnansweredBytes = 8 << 20         // beyond it handlers wait in Progress and Output
	stopLimit          = 2 * time.Second // for handlers that a drain has asked to stop
	answerLimit        = 5 * time.Second // for the server to answer what was said last
)

// Handler does one task. What it returns is the result, as JSON; an error fails the attempt, unless the handler had to
// stop. The context is done when it has to; Task.Stopped tells why.
type Handler func(ctx context.Context, task *Task) (any, error)

// Worker is configured by its exported fields and started by Run.
type Worker struct {
	Address     string
	Handlers    map[string]Handler
	Slots       int32             // 0: 10
	Name        string            // "": host name and process id
	TTL         time.Duration     // 0: the server's default
	DrainGrace  time.Duration     // 0: 30 s
	DialOptions []grpc.DialOption // nil: plain text

	mu              sync.Mutex
	wake            chan struct{} // closed and replaced by every change
	tasks           map[string]*Task
	strays          map[*Task]bool // their handlers still run though their claim is over
	unansweredBytes int
	maxEventBytes   int
	session         *reevev1.Reattach // id and secret, from Welcome
	stream          *stream           // while it is welcomed
	draining        bool
	leaving         bool // nothing is waited for any more
	closing         bool
}

// Run works until the context is done; then it drains and returns nil. An error means that the server will not have
// this worker.
func (w *Worker) Run(ctx context.Context) error {
	w.prepare()
	attached := make(chan error, 1)
	go func() { attached <- w.stayAttached() }()
	select {
	case err := <-attached:
		return err
	case <-ctx.Done():
	}
	w.drain()
	select {
	case err := <-attached:
		return err
	case <-time.After(answerLimit):
		return nil
	}
}

func (w *Worker) prepare() {
	if w.Slots == 0 {
		w.Slots = 10
	}
	if w.Name == "" {
		host, _ := os.Hostname()
		w.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if w.DrainGrace == 0 {
		w.DrainGrace = 30 * time.Second
	}
	if w.DialOptions == nil {
		w.DialOptions = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	w.wake, w.tasks, w.strays, w.maxEventBytes = make(chan struct{}), map[string]*Task{}, map[*Task]bool{}, 1<<20
}

// changed wakes whoever waits. Like everything below without a lock of its own it is called under w.mu.
func (w *Worker) changed() {
	close(w.wake)
	w.wake = make(chan struct{})
}

// waitFor gives the lock up meanwhile.
func (w *Worker) waitFor(holds func() bool, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for !holds() {
		wake, isOver := w.wake, false
		w.mu.Unlock()
		select {
		case <-wake:
		case <-timer.C:
			isOver = true
		}
		w.mu.Lock()
		if isOver {
			return
		}
	}
}

func (w *Worker) later(after time.Duration, t *Task, act func()) {
	time.AfterFunc(after, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if t.phase != over {
			act()
			w.changed()
		}
	})
}

// say numbers the event and keeps it until it is judged. Without effect when the claim is over.
func (w *Worker) say(t *Task, event *reevev1.WorkerEvent) error {
	if t.phase == over {
		return nil
	}
	// What cannot be encoded would end this stream, and every later one that says it again.
	bytes, err := proto.Marshal(event)
	if err != nil {
		return &Failure{Code: "event_unsayable", Message: err.Error(), Retryable: true}
	}
	if size := len(bytes); size > w.maxEventBytes+4096 {
		return &Failure{Code: "event_too_large", Message: fmt.Sprintf("%d bytes, store it elsewhere", size)}
	}
	t.lastSeq++
	event.TaskId, event.Generation, event.Epoch = t.Claim.TaskId, t.Claim.Generation, t.Claim.Epoch
	event.EventSeq = t.lastSeq
	t.events = append(t.events, event)
	w.unansweredBytes += proto.Size(event)
	w.changed()
	return nil
}

// runHandler settles whatever the handler does: a claim without an ending is held for ever.
func (w *Worker) runHandler(t *Task) {
	ending := handlerError("the handler ended its goroutine") // what runtime.Goexit leaves
	defer func() {
		if panicked := recover(); panicked != nil {
			ending = handlerError(fmt.Sprintf("panic: %v", panicked))
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		t.running = false
		t.cancel()
		if t.phase == over {
			delete(w.strays, t)
			w.saySlots()
		} else if ending != nil && t.phase == open {
			w.settle(t, ending)
		}
		w.changed()
	}()
	ending = w.endingOf(t)
}

// endingOf runs the handler; nil where the server settles, or gets the task back.
func (w *Worker) endingOf(t *Task) *reevev1.WorkerEvent {
	handler := w.Handlers[t.Claim.ActionKind]
	if handler == nil {
		return failed(&Failure{Code: "no_handler", Message: "no handler for " + t.Claim.ActionKind, Retryable: true})
	}
	result, err := w.callHandler(handler, t)
	if err == nil {
		text, jsonErr := json.Marshal(result)
		if jsonErr == nil {
			completed := &reevev1.Completed{ResultJson: string(text)}
			return &reevev1.WorkerEvent{Event: &reevev1.WorkerEvent_Completed{Completed: completed}}
		}
		err = jsonErr
	}
	var failure *Failure
	why := t.Stopped()
	switch {
	case why != nil && obeys(err):
		if !errors.Is(why, ErrCancelled) {
			return nil
		}
		cancelled := &reevev1.Cancelled{Reason: why.Error()}
		return &reevev1.WorkerEvent{Event: &reevev1.WorkerEvent_Cancelled{Cancelled: cancelled}}
	case errors.As(err, &failure):
		return failed(failure)
	default:
		return handlerError(err.Error())
	}
}

func (w *Worker) callHandler(handler Handler, t *Task) (any, error) {
	w.mu.Lock()
	// An earlier handler of the task may not have heard yet that it has lost it.
	w.waitFor(func() bool { return t.why != nil || !w.isStray(t.Claim.TaskId) }, forever)
	if t.why != nil {
		w.mu.Unlock()
		return nil, t.Stopped()
	}
	_ = w.say(t, &reevev1.WorkerEvent{Event: &reevev1.WorkerEvent_Started{Started: &reevev1.Started{}}})
	w.mu.Unlock()
	return handler(t.ctx, t)
}

func (w *Worker) isStray(taskID string) bool {
	for t := range w.strays {
		if t.Claim.TaskId == taskID {
			return true
		}
	}
	return false
}

// obeys: what the handler returned is its obedience to a stop.
func obeys(err error) bool {
	for _, stop := range []error{ErrCancelled, ErrLeaseLost, ErrDraining, context.Canceled} {
		if errors.Is(err, stop) {
			return true
		}
	}
	return false
}

func (w *Worker) hello() *reevev1.Hello {
	hello := &reevev1.Hello{WorkerName: w.Name, Slots: w.freeSlots()}
	for kind := range w.Handlers {
		hello.ActionKinds = append(hello.ActionKinds, kind)
	}
	if w.TTL != 0 {
		hello.Ttl = durationpb.New(w.TTL)
	}
	if w.session != nil {
		hello.Reattach = &reevev1.Reattach{SessionId: w.session.SessionId, SessionSecret: w.session.SessionSecret}
		for _, t := range w.tasks {
			held := &reevev1.HeldClaim{TaskId: t.Claim.TaskId, Epoch: t.Claim.Epoch, AnsweredThrough: t.answeredThrough}
			hello.Reattach.Held = append(hello.Reattach.Held, held)
		}
	}
	return hello
}

// freeSlots: a handler that does not stop still takes its place.
func (w *Worker) freeSlots() int32 {
	if strays := int32(len(w.strays)); strays < w.Slots {
		return w.Slots - strays
	}
	return 0
}

func (w *Worker) saySlots() {
	if w.stream != nil {
		w.stream.saySlots(w.freeSlots())
	}
}

func (w *Worker) stayAttached() error {
	reconnects, everWelcomed := pauses{first: firstReconnect}, false
	for {
		s := &stream{worker: w}
		err := s.run()
		w.mu.Lock()
		if w.closing {
			w.mu.Unlock()
			return nil
		}
		code := status.Code(err)
		log.Printf("reeve: the stream has ended: %v", err)
		everWelcomed = everWelcomed || s.welcomed
		if s.wasOfUse() {
			reconnects.reset()
		}
		if !everWelcomed && isHopeless(code) {
			w.mu.Unlock()
			return err
		}
		// On this call nothing but SESSION_GONE has this status.
		if code == codes.FailedPrecondition {
			w.session = nil
			for _, t := range w.tasks {
				w.lose(t)
			}
		}
		if err != nil || !s.drains {
			w.waitFor(func() bool { return w.closing }, reconnects.next(0))
		}
		closing := w.closing
		w.mu.Unlock()
		if closing {
			return nil
		}
	}
}

// isHopeless: no second try would change it.
func isHopeless(code codes.Code) bool {
	switch code {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented, codes.InvalidArgument:
		return true
	}
	return false
}

func (w *Worker) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draining = true
	if w.stream != nil {
		w.sayDrain(w.stream)
	}
	for _, t := range w.tasks {
		w.ask(t)
	}
	w.waitFor(func() bool { return len(w.tasks) == 0 }, w.DrainGrace)
	w.leaving = true
	for _, t := range w.tasks {
		t.stop(ErrDraining)
	}
	w.changed()
	w.waitFor(func() bool {
		for _, t := range w.tasks {
			if t.running {
				return false
			}
		}
		return true
	}, stopLimit)
	for _, t := range w.tasks {
		if t.phase == open || t.awaitsChildren() {
			w.release(t)
		}
	}
	w.changed()
	w.waitFor(func() bool { return len(w.tasks) == 0 }, answerLimit)
	w.closing = true
	if w.stream != nil {
		w.stream.halfClose()
	}
	w.changed()
}

func (w *Worker) sayDrain(s *stream) {
	s.put(&reevev1.WorkRequest{Frame: &reevev1.WorkRequest_Drain{Drain: &reevev1.WorkerDrain{}}})
}
