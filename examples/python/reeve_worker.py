"""A Reeve worker over the Work stream: handlers by kind, each claim in a thread of its own.

Copy it into your project, with reeve_task.py and reeve_stream.py. It keeps what the contract asks of every worker
(docs/clients.md): numbers, receipts, heartbeats, re-attach, drain. Handlers get a `Task` and return the result; see
worker.py.
"""

import logging
import os
import signal
import socket
import threading
import time

import grpc
from reeve.v1 import error_reason_pb2 as errors, task_pb2, worker_service_pb2 as ws
from reeve_stream import Stream
from reeve_task import Cancelled, Draining, Failure, LeaseLost, Pauses, Stopped, Task, ended_by, failed, to_json

log = logging.getLogger("reeve")

MAX_UNANSWERED_BYTES = 8 * 2**20  # beyond it handlers wait in progress() and output()
FIRST_BACKOFF_SECONDS = 0.1
STOP_SECONDS = 2  # for handlers that a drain has asked to stop
ANSWER_SECONDS = 5  # for the server to answer what was said last
HALF_CLOSE_SECONDS = 1  # for a stream to end in peace when even that has passed

# No second try would change these.
HOPELESS = {
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.INVALID_ARGUMENT,
}
# Refusals that may be gone when the same is said again.
PASSING = {
    errors.ERROR_REASON_CONTENTION,
    errors.ERROR_REASON_OVERLOADED,
    errors.ERROR_REASON_STORE_UNAVAILABLE,
    errors.ERROR_REASON_OUTCOME_UNKNOWN,
    errors.ERROR_REASON_CHILDREN_ACTIVE,  # children end by themselves
}


class Worker:
    """`handlers`: functions of a Task, by action kind. `run()` works until SIGTERM or SIGINT."""

    def __init__(self, address, handlers, slots=10, name=None, ttl_seconds=30, drain_grace_seconds=30):
        self.address, self.handlers, self.slots = address, handlers, slots
        self.name, self.ttl_seconds = name or f"{socket.gethostname()}-{os.getpid()}", ttl_seconds
        self.drain_grace_seconds = drain_grace_seconds
        self.lock = threading.Condition()  # guards everything below, and is notified of every change of it
        self.tasks = {}  # held, by task id
        self.strays = set()  # tasks whose handlers still run though their claim is over
        self.unanswered_bytes = 0
        self.max_event_bytes = 2**20
        self.session = None  # (id, secret), from Welcome
        self.stream = None  # while it is welcomed
        self.draining = self.leaving = self.closing = False
        # A byte in it: time to leave. Python itself notices a signal only between two of its steps: one that comes just
        # before a wait for a lock is not heard until the wait ends, and a handler that takes a lock may wait for itself.
        self.leave, self._waker = socket.socketpair()
        self.fatal = None

    def run(self):
        self._waker.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        attached = threading.Thread(target=self._attached, daemon=True)
        attached.start()
        self.leave.recv(1)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)  # a second one does not wait
        if not self.fatal:
            answered_by = self._drain()
            attached.join(max(HALF_CLOSE_SECONDS, answered_by - time.monotonic()))
        if self.fatal:
            raise self.fatal

    # What handlers say.

    def say(self, task, **event):
        """Numbers the event and keeps it until it is judged. Without effect when the claim is over."""
        with self.lock:
            if task.phase == "over":
                return
            message = ws.WorkerEvent(event_seq=task.last_seq + 1, **task.key, **event)
            if message.ByteSize() > self.max_event_bytes + 4096:
                raise Failure("event_too_large", f"{message.ByteSize()} bytes, store it elsewhere", retryable=False)
            task.last_seq += 1
            task.events.append(message)
            self.unanswered_bytes += message.ByteSize()
            self.lock.notify_all()

    def wait_for_room(self, task):
        with self.lock:
            self.lock.wait_for(lambda: self.unanswered_bytes < MAX_UNANSWERED_BYTES or task.why)

    def acknowledge(self, task):
        """The handler has seen that it has to stop."""
        with self.lock:
            if task.cancellation_token and not task.acknowledged and task.phase != "over":
                task.acknowledged = True
                self._receipt(task, task_pb2.RECEIPT_KIND_ACKNOWLEDGED)

    def _run_handler(self, task):
        ending = self._ending_of(task)
        with self.lock:
            task.running = False
            if task.phase == "over":
                self.strays.remove(task)
                self._say_slots()
            elif ending and task.phase == "open":
                self._settle(task, ending)
            self.lock.notify_all()

    def _ending_of(self, task):
        """Runs the handler. Whatever it does, something can be said of it: a claim without an ending is held for ever."""
        try:
            return dict(completed=task_pb2.Completed(result_json=to_json(self._call_handler(task))))
        except BaseException as error:  # SystemExit too: it would end this thread and nothing else
            if not isinstance(error, (Failure, Stopped)):
                log.exception("the handler of %s failed", task.claim.task_id)
            try:
                return ended_by(error, task)
            except Exception:
                log.exception("what the handler of %s raised cannot be said", task.claim.task_id)
                return failed(Failure("handler_error", "what it raised cannot be said"))

    def _call_handler(self, task):
        handler = self.handlers.get(task.claim.action_kind)
        if handler is None:
            raise Failure("no_handler", f"no handler for {task.claim.action_kind}")
        with self.lock:  # an earlier handler of the task may not have heard yet that it has lost it
            self.lock.wait_for(lambda: task.why or not self._is_stray(task.claim.task_id))
        task.check()
        self.say(task, started=ws.Started())
        return handler(task)

    def _is_stray(self, task_id):
        return any(task.claim.task_id == task_id for task in self.strays)

    # What the server says. Under the lock, in the order of the frames.

    def hear(self, frame):
        kind = frame.WhichOneof("frame")
        if kind == "claims":
            for claim in frame.claims.claims:
                self._take(claim)
        elif kind == "verdicts":
            for verdict in frame.verdicts.verdicts:
                self._judge(verdict)
        elif kind == "cancels":
            for notice in frame.cancels.cancels:
                self._cancel(notice)
        elif kind == "leases_lost":
            for loss in frame.leases_lost.losses:
                task = self._held(loss)
                if task:
                    self._lose(task, ws.LeaseLossCause.Name(loss.cause) if loss.cause in LOSS_CAUSES else "unknown")
        elif kind == "rejection":
            refusal = frame.rejection.refusal
            log.warning("frame %d was refused: %s", frame.rejection.frame_id, refusal.message)
            if refusal.reason in PASSING:  # events are numbered, so saying all of them again is safe
                for task in self.tasks.values():
                    self._rest(task, refusal)

    def welcome(self, stream, welcome):
        resumed, self.session = self.session, (welcome.session_id, welcome.session_secret)
        self.max_event_bytes = welcome.limits.max_event_bytes or self.max_event_bytes
        if resumed:
            kept = {(held.task_id, held.epoch): held.answered_through for held in welcome.leases_kept}
            for task in list(self.tasks.values()):
                through = kept.get((task.claim.task_id, task.claim.epoch))
                if through is None:
                    self._lose(task, "not kept")
                    continue
                self._answered(task, through)
                if task.phase == "settling" and not task.events:  # judged and still ours: it was refused
                    task.asking = None
                    self._settle(task, task.settlement)
                self._say_again(task)
        self.stream = stream
        if self.draining:
            stream.put(drain=ws.WorkerDrain())
            stream.releases += [task for task in self.tasks.values() if task.phase == "releasing"]
        self._say_slots()

    def _take(self, claim):
        held = self.tasks.get(claim.task_id)
        if held and held.claim.epoch == claim.epoch:
            return  # offered twice
        if held:
            self._lose(held, "superseded")
        task = self.tasks[claim.task_id] = Task(self, claim)
        if self.draining:
            return self._release(task)
        self.say(task, accepted=ws.Accepted())
        task.running = True
        threading.Thread(target=self._run_handler, args=[task], daemon=True).start()

    def _judge(self, verdict):
        task = self._held(verdict)
        if not task:
            return
        self._answered(task, verdict.judged_through)
        ending_refused = None
        for rejected in verdict.rejected:
            if rejected.refusal.reason == errors.ERROR_REASON_LEASE_LOST:
                return self._lose(task, "superseded")
            if rejected.event_seq > task.answered_through:  # not judged
                self._rest(task, rejected.refusal)
            elif task.phase == "settling" and rejected.event_seq == task.last_seq:
                ending_refused = rejected.refusal
            else:
                why = rejected.refusal.message
                log.warning("event %d of %s was refused: %s", rejected.event_seq, task.claim.task_id, why)
        if task.phase != "settling" or task.asking or task.answered_through < task.last_seq:
            return
        if ending_refused and ending_refused.reason in PASSING:
            task.asking = ending_refused
            if self.leaving and self._awaits_children(task):
                return self._release(task)
            self._later(task.asks.next(hint(ending_refused)), self._ask, task)
        elif ending_refused and not task.was_refused:
            task.was_refused = True
            self._settle(task, failed(Failure("ending_refused", ending_refused.message, retryable=False)))
        else:
            self._forget(task)

    def _cancel(self, notice):
        task = self._held(notice)
        if not task:
            return
        task.cancellation_token = notice.cancellation_token
        self._receipt(task, task_pb2.RECEIPT_KIND_DELIVERED)
        if task.acknowledged:
            self._receipt(task, task_pb2.RECEIPT_KIND_ACKNOWLEDGED)
        task.stop(Cancelled(notice.reason.summary))

    # What becomes of claims.

    def _held(self, about):
        task = self.tasks.get(about.task_id)
        return task if task and task.claim.epoch == about.epoch else None

    def _settle(self, task, ending):
        task.phase, task.settlement = "settling", ending
        try:
            self.say(task, **ending)
        except Failure as error:  # too large
            task.settlement = failed(error)
            self.say(task, **task.settlement)

    def _ask(self, task):
        """For the same ending once more."""
        if task.asking:
            task.asking = None
            self._settle(task, task.settlement)

    def _awaits_children(self, task):
        return task.asking and task.asking.reason == errors.ERROR_REASON_CHILDREN_ACTIVE

    def _answered(self, task, through):
        if through > task.answered_through:
            task.repeats.reset()
        task.answered_through = max(task.answered_through, through)
        task.sent_through = max(task.sent_through, task.answered_through)
        while task.events and task.events[0].event_seq <= through:
            self.unanswered_bytes -= task.events.popleft().ByteSize()

    def _rest(self, task, refusal):
        """Nothing of it is sent for a while, then all that was not judged."""
        if not task.resting:
            task.resting = True
            self._later(task.repeats.next(hint(refusal)), self._say_again, task)

    def _say_again(self, task):
        task.resting, task.sent_through = False, task.answered_through

    def _lose(self, task, why):
        task.stop(LeaseLost(why))
        self._forget(task)

    def _forget(self, task):
        if task.phase != "over":
            self._answered(task, task.last_seq)
            task.phase = "over"
            if task.running:
                self.strays.add(task)
            del self.tasks[task.claim.task_id]
            self._say_slots()

    def _release(self, task):
        task.phase, task.asking = "releasing", None
        if self.stream:
            self.stream.releases.append(task)

    def _receipt(self, task, kind):
        if self.stream:  # without one it is not missed: the cancel comes again after the re-attach
            receipt = ws.CancelReceipt(cancellation_token=task.cancellation_token, kind=kind, **task.key)
            self.stream.put(cancel_receipts=ws.CancelReceipts(receipts=[receipt]))

    def _say_slots(self):
        if self.stream:  # a handler that does not stop still takes its place
            self.stream.say_slots(self._free_slots())

    def _free_slots(self):
        return max(0, self.slots - len(self.strays))

    def _later(self, seconds, act, task, *args):
        def run():
            with self.lock:
                if task.phase != "over":
                    act(task, *args)
                    self.lock.notify_all()

        timer = threading.Timer(seconds, run)
        timer.daemon = True
        timer.start()

    # How the worker stays, and how it leaves.

    def hello(self):
        hello = ws.Hello(worker_name=self.name, action_kinds=list(self.handlers), slots=self._free_slots())
        hello.ttl.seconds = self.ttl_seconds
        if self.session:
            held = [
                ws.HeldClaim(task_id=t.claim.task_id, epoch=t.claim.epoch, answered_through=t.answered_through)
                for t in self.tasks.values()
            ]
            hello.reattach.CopyFrom(ws.Reattach(session_id=self.session[0], session_secret=self.session[1], held=held))
        return hello

    def _attached(self):
        try:
            self.fatal = self._stay_attached()
        except Exception as error:  # of this program: better gone than there and deaf
            self.fatal = error
        if self.fatal:
            self._waker.send(b"!")

    def _stay_attached(self):
        """Until the worker has left; returns the RpcError that no second try would change."""
        pauses, ever_welcomed = Pauses(FIRST_BACKOFF_SECONDS), False
        while not self.closing:
            stream = Stream(self)
            error = stream.run()
            ever_welcomed |= stream.welcomed
            if stream.was_of_use:
                pauses.reset()
            code = error and error.code()
            log.info("the stream has ended: %s", error.details() if error else "OK")
            if code in HOPELESS and not ever_welcomed:
                return error
            with self.lock:
                # On this call nothing but SESSION_GONE has this status.
                if code == grpc.StatusCode.FAILED_PRECONDITION:
                    self.session = None
                    for task in list(self.tasks.values()):
                        self._lose(task, "session gone")
                if error or not stream.server_drains:
                    self.lock.wait_for(lambda: self.closing, pauses.next())
        return None

    def _drain(self):
        """Returns until when the server may take to answer; by `time.monotonic()`."""
        with self.lock:
            self.draining = True
            if self.stream:
                self.stream.put(drain=ws.WorkerDrain())
            for task in self.tasks.values():
                self._ask(task)
            self.lock.wait_for(lambda: not self.tasks, self.drain_grace_seconds)
            self.leaving = True
            for task in self.tasks.values():
                task.stop(Draining("the worker is leaving"))
            self.lock.notify_all()
            self.lock.wait_for(lambda: not any(task.running for task in self.tasks.values()), STOP_SECONDS)
            for task in self.tasks.values():
                if task.phase == "open" or self._awaits_children(task):
                    self._release(task)
            self.lock.notify_all()
            answered_by = time.monotonic() + ANSWER_SECONDS
            self.lock.wait_for(lambda: not self.tasks, ANSWER_SECONDS)
            self.closing = True
            if self.stream:
                self.stream.half_close()
            self.lock.notify_all()
        return answered_by


def hint(refusal):
    return refusal.retry_after.ToTimedelta().total_seconds()


LOSS_CAUSES = ws.LeaseLossCause.values()
