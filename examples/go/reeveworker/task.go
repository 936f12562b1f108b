package reeveworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	reevev1 "reeve.example/gen/reeve/v1"
)

// Why a handler has to stop: what Task.Stopped returns, and what a handler should return then.
var (
	// ErrCancelled: somebody cancelled the task; it settles as cancelled.
	ErrCancelled = errors.New("the task is cancelled")
	// ErrLeaseLost: the claim is another's now; nothing that is said any more is heard.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrDraining: the worker is leaving; the task goes back to the queue.
	ErrDraining = errors.New("the worker is leaving")
)

// Failure fails the attempt with a code of its own; any other error fails it with handler_error, retryable.
type Failure struct {
	Code      string
	Message   string
	Retryable bool
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Code, f.Message) }

type phase int

const (
	open      phase = iota // its handler runs
	settling               // its ending is said and not judged
	releasing              // handed back, not answered
	over                   // settled, released or lost: nothing it says is sent
)

// Task is one claim, as its handler sees it. What it says is numbered, kept until it is judged, and sent again after
// a broken stream.
type Task struct {
	// Claim is all of it. (Generation, Epoch) is the fencing token for outside resources.
	Claim *reevev1.Claim

	worker *Worker
	ctx    context.Context
	cancel context.CancelFunc

	// Guarded by worker.mu.
	why                                   error
	phase                                 phase
	running, acknowledged, endingRefused  bool
	events                                []*reevev1.WorkerEvent // said and unanswered
	lastSeq, sentThrough, answeredThrough int64
	cancellationToken                     string
	ending                                *reevev1.WorkerEvent
	asking                                *reevev1.Refusal // of the ending, for now: it is asked for again
	resting                               bool             // what was said was not judged; it is said again after a pause
	repeats, asks                         pauses
}

// Args reads the arguments into a value of the handler's own type.
func (t *Task) Args(into any) error {
	if err := json.Unmarshal([]byte(t.Claim.ArgsJson), into); err != nil {
		return &Failure{Code: "bad_args", Message: err.Error()}
	}
	return nil
}

// Progress says how far it is, from 0 to 1. An error means that the handler has to stop, as with all that follow.
func (t *Task) Progress(fraction float64, message string) error {
	progress := &reevev1.Progress{Fraction: &fraction, Message: sayable(message, maxMessageBytes)}
	return t.say(&reevev1.WorkerEvent{Event: &reevev1.WorkerEvent_Progress{Progress: progress}})
}

// Output is a partial result, any JSON value of at most 1 MiB.
func (t *Task) Output(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	output := &reevev1.Output{Content: &reevev1.Output_OutputJson{OutputJson: string(text)}}
	return t.say(&reevev1.WorkerEvent{Event: &reevev1.WorkerEvent_Output{Output: output}})
}

// Save keeps state for the next attempt, which finds it in Claim.CheckpointJson. At most 128 KiB.
func (t *Task) Save(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	checkpoint := &reevev1.Checkpoint{CheckpointJson: string(text)}
	return t.say(&reevev1.WorkerEvent{Event: &reevev1.WorkerEvent_Checkpoint{Checkpoint: checkpoint}})
}

// Wait sleeps, or returns why the handler has to stop.
func (t *Task) Wait(duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ctx.Done():
	}
	return t.Stopped()
}

// Stopped tells why the handler has to stop; nil while it may go on. A cancel counts as acknowledged by it.
func (t *Task) Stopped() error {
	t.worker.mu.Lock()
	defer t.worker.mu.Unlock()
	t.acknowledge()
	return t.why
}

func (t *Task) say(event *reevev1.WorkerEvent) error {
	if err := t.Stopped(); err != nil {
		return err
	}
	w := t.worker
	w.mu.Lock()
	err := w.say(t, event)
	w.waitFor(func() bool { return w.unansweredBytes < maxUnansweredBytes || t.why != nil }, forever)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	return t.Stopped()
}

func (t *Task) stop(why error) {
	if t.why == nil {
		t.why = why
	}
	t.cancel()
}

func (t *Task) acknowledge() {
	if t.why == nil || t.cancellationToken == "" || t.acknowledged || t.phase == over {
		return
	}
	t.acknowledged = true
	t.worker.receipt(t, reevev1.ReceiptKind_RECEIPT_KIND_ACKNOWLEDGED)
}

const (
	maxCodeBytes    = 128
	maxMessageBytes = 8192
)

func failed(failure *Failure) *reevev1.WorkerEvent {
	taskError := &reevev1.TaskError{
		Code:      sayable(failure.Code, maxCodeBytes),
		Message:   sayable(failure.Message, maxMessageBytes),
		Retryable: &failure.Retryable,
	}
	if taskError.Code == "" {
		taskError.Code = "handler_error"
	}
	return &reevev1.WorkerEvent{Event: &reevev1.WorkerEvent_Failed{Failed: &reevev1.Failed{Error: taskError}}}
}

func handlerError(message string) *reevev1.WorkerEvent {
	return failed(&Failure{Code: "handler_error", Message: message, Retryable: true})
}

// sayable is the text as a frame can hold it: UTF-8, of so many bytes.
func sayable(text string, mostBytes int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > mostBytes {
		text = strings.ToValidUTF8(text[:mostBytes], "")
	}
	return text
}
