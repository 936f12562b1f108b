"""One Work stream of a worker: its frames and their numbers, its heartbeats, and the watch over the server's silence.

What frames mean is the worker's. gRPC asks `_frames` for the next frame only as fast as the server reads, so nothing
piles up here.
"""

import threading
import time
from collections import deque

import grpc
from reeve.v1 import error_reason_pb2 as errors, worker_service_pb2 as ws, worker_service_pb2_grpc

MAX_FRAME_BYTES = 1_500_000  # the contract allows 1.5 MiB
WELCOME_SECONDS = 15
HALF_CLOSED_SECONDS = 5  # for the server to answer what is outstanding
LASTING_SECONDS = 10  # what was welcome for so long was no failure

CHANNEL_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),  # a reconnect must not land on the connection that went silent
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.enable_retries", 0),
]


class Stream:
    def __init__(self, worker):
        self.worker, self.lock = worker, worker.lock
        self.welcomed = self.server_drains = self.took_words = False
        self.releases = []  # tasks to hand back, after what was said about them
        self._control = deque()  # goes before events
        self._slots = None
        self._over = self._half_closed = self._beat_due = False
        self._interval = WELCOME_SECONDS / 2
        self._heard_at = self._welcomed_at = time.monotonic()

    @property
    def was_of_use(self):
        """A Welcome alone is no success: what was said next may be what ends every stream."""
        return self.took_words or (self.welcomed and time.monotonic() - self._welcomed_at > LASTING_SECONDS)

    def run(self):
        """Until the stream has ended; returns the RpcError it ended with, None for OK."""
        with grpc.insecure_channel(self.worker.address, CHANNEL_OPTIONS) as channel:
            with self.lock:
                hello = self.worker.hello()
            self._slots = hello.slots
            self.put(hello=hello)
            self.call = worker_service_pb2_grpc.WorkerServiceStub(channel).Work(self._frames())
            threading.Thread(target=self._beat, daemon=True).start()
            try:
                for response in self.call:
                    self._heard_at = time.monotonic()
                    with self.lock:
                        self._hear(response)
                        self.lock.notify_all()
                return None
            except grpc.RpcError as error:
                return error
            finally:
                with self.lock:
                    self._over, self.worker.stream = True, None
                    self.lock.notify_all()

    def put(self, **frame):
        """A frame that waits for no event."""
        with self.lock:
            self._control.append(frame)
            self.lock.notify_all()

    def say_slots(self, slots):
        if slots != self._slots:
            self._slots = slots
            self.put(slots=ws.Slots(slots=slots))

    def half_close(self):
        """Says nothing more; the server answers what is outstanding and ends the stream."""
        with self.lock:
            self._half_closed = True
            self.lock.notify_all()
        timer = threading.Timer(HALF_CLOSED_SECONDS, self.call.cancel)
        timer.daemon = True
        timer.start()

    def _hear(self, response):
        kind = response.WhichOneof("frame")
        if kind == "welcome":
            self._interval = response.welcome.heartbeat_interval.ToTimedelta().total_seconds()
            self.welcomed, self._welcomed_at = True, time.monotonic()
            self.worker.welcome(self, response.welcome)
        elif kind == "drain":
            self.server_drains = True
            timer = threading.Timer(response.drain.reconnect_after.ToTimedelta().total_seconds(), self.half_close)
            timer.daemon = True
            timer.start()
        elif kind is None:
            refusal = errors.Refusal(
                reason=errors.ERROR_REASON_UNSUPPORTED,
                grpc_code=grpc.StatusCode.UNIMPLEMENTED.value[0],
                message="this worker does not know this kind of frame",
            )
            self.put(rejection=ws.FrameRejection(frame_id=response.frame_id, refusal=refusal))
        else:
            self.took_words |= kind == "verdicts"
            self.worker.hear(response)

    def _frames(self):
        frame_id = 0
        while True:
            with self.lock:
                frame = self._next_frame()
                while frame is None and not self._over and not self._half_closed:
                    self.lock.wait()
                    frame = self._next_frame()
            if frame is None or self._over:
                return
            frame_id += 1
            yield ws.WorkRequest(frame_id=frame_id, **frame)

    def _next_frame(self):
        if self._control:
            return self._control.popleft()
        if not self.welcomed or self._half_closed:
            return None
        tasks = self.worker.tasks.values()
        if self._beat_due:
            self._beat_due = False
            held = [ws.ClaimRef(task_id=task.claim.task_id, epoch=task.claim.epoch) for task in tasks]
            return dict(heartbeat=ws.WorkerHeartbeat(held=held))
        events = list(self._take_unsent(tasks))
        if events:
            return dict(events=ws.WorkerEvents(events=events))
        if self.releases:
            claims = [ws.ReleasedClaim(**task.key) for task in self.releases]
            self.releases = []
            return dict(release=ws.Release(claims=claims))
        return None

    def _take_unsent(self, tasks):
        room = MAX_FRAME_BYTES
        for task in tasks:
            while task.sent_through < task.last_seq and not task.resting:
                event = task.events[task.sent_through + 1 - task.events[0].event_seq]
                room -= event.ByteSize() + 8
                if room < 0:
                    return
                task.sent_through = event.event_seq
                yield event

    def _beat(self):
        woke_at = time.monotonic()
        while True:
            with self.lock:
                interval = self._interval
                self.lock.wait_for(lambda: self._over or self._interval != interval, interval)
                if self._over:
                    return
                if self._interval != interval:  # the Welcome has come
                    woke_at = time.monotonic()
                    continue
                now = time.monotonic()
                # After a stall of this process what the server said is still in the socket: read it before judging.
                late, woke_at = now - woke_at > 1.5 * interval, now
                if now - self._heard_at > 2 * interval and not late:
                    self.call.cancel()
                elif self.welcomed:
                    self._beat_due = True
                    self.lock.notify_all()
                elif now - self._heard_at > WELCOME_SECONDS:
                    self.call.cancel()
