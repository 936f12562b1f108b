package reeveworker

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	reevev1 "reeve.example/gen/reeve/v1"
)

const (
	maxFrameBytes = 1_500_000 // the contract allows 1.5 MiB
	welcomeLimit  = 15 * time.Second
	// For the server to answer what is outstanding.
	halfClosedLimit = 5 * time.Second
	// What was welcome for so long was no failure.
	lasting = 10 * time.Second
)

// stream is one Work call: its frames and their numbers, its heartbeats, and the watch over the server's silence.
// What frames mean is the worker's. Send blocks while the server does not read, so nothing piles up here.
type stream struct {
	worker *Worker
	call   reevev1.WorkerService_WorkClient
	cancel context.CancelFunc

	// Guarded by worker.mu.
	control    []*reevev1.WorkRequest // goes before events
	releases   []*Task                // to hand back, after what was said about them
	slots      int32
	interval   time.Duration
	heardAt    time.Time
	welcomedAt time.Time
	welcomed   bool
	tookWords  bool // something that was said on it was judged
	drains     bool // the server is going
	halfClosed bool
	beatDue    bool
	ended      bool
}

// run lasts until the stream has ended; nil means that the server ended it OK.
func (s *stream) run() error {
	w := s.worker
	// A connection of its own: a reconnect must not land on the one that went silent.
	conn, err := grpc.NewClient(w.Address, w.DialOptions...)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.cancel, s.heardAt, s.interval = cancel, time.Now(), welcomeLimit/2
	if s.call, err = reevev1.NewWorkerServiceClient(conn).Work(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	hello := w.hello()
	s.slots = hello.Slots
	s.put(&reevev1.WorkRequest{Frame: &reevev1.WorkRequest_Hello{Hello: hello}})
	w.mu.Unlock()
	go s.sendFrames()
	go s.beat()
	err = s.receive()
	w.mu.Lock()
	defer w.mu.Unlock()
	s.ended, w.stream = true, nil
	w.changed()
	return err
}

func (s *stream) receive() error {
	for {
		response, err := s.call.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.worker.mu.Lock()
		s.heardAt = time.Now()
		s.hear(response)
		s.worker.changed()
		s.worker.mu.Unlock()
	}
}

func (s *stream) hear(response *reevev1.WorkResponse) {
	switch frame := response.Frame.(type) {
	case *reevev1.WorkResponse_Welcome:
		s.interval, s.welcomed, s.welcomedAt = frame.Welcome.HeartbeatInterval.AsDuration(), true, time.Now()
		s.worker.welcome(s, frame.Welcome)
	case *reevev1.WorkResponse_Drain:
		s.drains = true
		time.AfterFunc(frame.Drain.ReconnectAfter.AsDuration(), func() {
			s.worker.mu.Lock()
			defer s.worker.mu.Unlock()
			s.halfClose()
		})
	case nil:
		refusal := &reevev1.Refusal{
			Reason:   reevev1.ErrorReason_ERROR_REASON_UNSUPPORTED,
			GrpcCode: int32(codes.Unimplemented),
			Message:  "this worker does not know this kind of frame",
		}
		rejection := &reevev1.FrameRejection{FrameId: response.FrameId, Refusal: refusal}
		s.put(&reevev1.WorkRequest{Frame: &reevev1.WorkRequest_Rejection{Rejection: rejection}})
	default:
		if _, isVerdicts := frame.(*reevev1.WorkResponse_Verdicts); isVerdicts {
			s.tookWords = true
		}
		s.worker.hear(response)
	}
}

// wasOfUse: a Welcome alone is no success, as what was said next may be what ends every stream.
func (s *stream) wasOfUse() bool {
	return s.tookWords || s.welcomed && time.Since(s.welcomedAt) > lasting
}

// put queues a frame that waits for no event.
func (s *stream) put(frame *reevev1.WorkRequest) {
	s.control = append(s.control, frame)
	s.worker.changed()
}

func (s *stream) saySlots(slots int32) {
	if slots != s.slots {
		s.slots = slots
		s.put(&reevev1.WorkRequest{Frame: &reevev1.WorkRequest_Slots{Slots: &reevev1.Slots{Slots: slots}}})
	}
}

// halfClose says nothing more; the server answers what is outstanding and ends the stream.
func (s *stream) halfClose() {
	s.halfClosed = true
	s.worker.changed()
	time.AfterFunc(halfClosedLimit, s.cancel)
}

func (s *stream) sendFrames() {
	for id := int64(1); ; id++ {
		frame := s.next()
		if frame == nil {
			_ = s.call.CloseSend()
			return
		}
		frame.FrameId = id
		if s.call.Send(frame) != nil {
			return // Recv tells why
		}
	}
}

// next waits for something to send; nil means that there will be nothing more.
func (s *stream) next() *reevev1.WorkRequest {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	var frame *reevev1.WorkRequest
	s.worker.waitFor(func() bool {
		if !s.ended {
			frame = s.take()
		}
		return frame != nil || s.ended || s.halfClosed
	}, forever)
	return frame
}

func (s *stream) take() *reevev1.WorkRequest {
	if len(s.control) > 0 {
		frame := s.control[0]
		s.control = s.control[1:]
		return frame
	}
	if !s.welcomed || s.halfClosed {
		return nil
	}
	if s.beatDue {
		s.beatDue = false
		heartbeat := &reevev1.WorkerHeartbeat{}
		for _, t := range s.worker.tasks {
			heartbeat.Held = append(heartbeat.Held, &reevev1.ClaimRef{TaskId: t.Claim.TaskId, Epoch: t.Claim.Epoch})
		}
		return &reevev1.WorkRequest{Frame: &reevev1.WorkRequest_Heartbeat{Heartbeat: heartbeat}}
	}
	if events := s.takeUnsent(); len(events) > 0 {
		return &reevev1.WorkRequest{Frame: &reevev1.WorkRequest_Events{Events: &reevev1.WorkerEvents{Events: events}}}
	}
	if len(s.releases) > 0 {
		release := &reevev1.Release{}
		for _, t := range s.releases {
			claim := &reevev1.ReleasedClaim{TaskId: t.Claim.TaskId, Generation: t.Claim.Generation, Epoch: t.Claim.Epoch}
			release.Claims = append(release.Claims, claim)
		}
		s.releases = nil
		return &reevev1.WorkRequest{Frame: &reevev1.WorkRequest_Release{Release: release}}
	}
	return nil
}

func (s *stream) takeUnsent() []*reevev1.WorkerEvent {
	var events []*reevev1.WorkerEvent
	room := maxFrameBytes
	for _, t := range s.worker.tasks {
		for t.sentThrough < t.lastSeq && !t.resting {
			event := t.events[t.sentThrough+1-t.events[0].EventSeq]
			if room -= proto.Size(event) + 8; room < 0 {
				return events
			}
			t.sentThrough = event.EventSeq
			events = append(events, event)
		}
	}
	return events
}

// beat sends heartbeats, and ends the stream when the server is silent.
func (s *stream) beat() {
	w := s.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	wokeAt := time.Now()
	for {
		interval := s.interval
		w.waitFor(func() bool { return s.ended || s.interval != interval }, interval)
		if s.ended {
			return
		}
		now := time.Now()
		// After a stall of this process what the server said is still in the socket: read it before judging.
		late := now.Sub(wokeAt) > interval+interval/2
		wokeAt = now
		if s.interval != interval {
			continue // the Welcome has come
		}
		if !late && now.Sub(s.heardAt) > 2*interval {
			s.cancel()
		}
		if s.welcomed {
			s.beatDue = true
			w.changed()
		}
	}
}
