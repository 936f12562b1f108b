"""One claim of a Reeve worker: what its handler sees and says, and why it may have to stop."""

import functools
import json
import random
import threading
import traceback
from collections import deque

from reeve.v1 import task_pb2, worker_service_pb2 as ws

MAX_CODE_BYTES, MAX_MESSAGE_BYTES, MAX_DETAILS_BYTES = 128, 8192, 65_536
MAX_REASON_BYTES = 1024

to_json = functools.partial(json.dumps, allow_nan=False, ensure_ascii=False)


class Failure(Exception):
    """Raise it to fail the attempt with a code of your own; any other exception fails it with `handler_error`."""

    def __init__(self, code, message="", retryable=True, details=None):
        super().__init__(message)
        self.code, self.message, self.retryable, self.details = code, message, retryable, details


class Stopped(Exception):
    """Raised in a handler that has to stop. Let it through after cleaning up."""


class Cancelled(Stopped):
    """Somebody cancelled the task; it settles as cancelled."""


class LeaseLost(Stopped):
    """The claim is another's now; nothing that is said any more is heard."""


class Draining(Stopped):
    """The worker is leaving; the task goes back to the queue."""


class Task:
    """One claim, as its handler sees it."""

    def __init__(self, worker, claim):
        self._worker, self._stop = worker, threading.Event()
        self.claim = claim  # all of it, reeve.v1.Claim; (generation, epoch) fences outside resources
        self.why = None  # the Stopped to raise
        self.events = deque()  # said and unanswered, encoded once
        self.last_seq = self.sent_through = self.answered_through = 0
        self.phase = "open"  # open, settling, releasing, over
        self.running = self.acknowledged = self.was_refused = False
        self.cancellation_token = None
        self.settlement = None
        self.asking = None  # why the settlement was refused for now; it is asked for again
        self.resting = False  # what was said was not judged; it is said again after a pause
        self.repeats, self.asks = Pauses(0.025), Pauses(0.25)

    # Read where they are used, in the handler's thread: what Python cannot read fails the attempt.

    @functools.cached_property
    def args(self):
        return json.loads(self.claim.args_json or "{}")

    @functools.cached_property
    def checkpoint(self):
        return json.loads(self.claim.checkpoint_json) if self.claim.checkpoint_json else None

    def wait(self, seconds):
        """Sleeps; raises Stopped as soon as the handler has to stop."""
        self._stop.wait(seconds)
        self.check()

    def check(self):
        """Raises Stopped if the handler has to stop. Call it often, or wait()."""
        if self._stop.is_set():
            self._worker.acknowledge(self)
            raise self.why

    def progress(self, fraction=None, message=""):
        self._say(progress=ws.Progress(fraction=fraction, message=message[:4096]))

    def output(self, value):
        self._say(output=ws.Output(output_json=to_json(value)))

    def save(self, value):
        """State for the next attempt, at most 128 KiB of JSON."""
        self._say(checkpoint=ws.Checkpoint(checkpoint_json=to_json(value)))

    def _say(self, **event):
        self.check()
        self._worker.say(self, **event)
        self._worker.wait_for_room(self)
        self.check()

    def stop(self, why):
        self.why = self.why or why
        self._stop.set()

    @property
    def key(self):
        return dict(task_id=self.claim.task_id, generation=self.claim.generation, epoch=self.claim.epoch)


class Pauses:
    """Between tries: each about twice as long as the one before."""

    LONGEST_SECONDS = 5

    def __init__(self, first_seconds):
        self.first = self.step = first_seconds

    def next(self, at_least_seconds=0):
        step, self.step = self.step, min(2 * self.step, self.LONGEST_SECONDS)
        return at_least_seconds + random.uniform(step / 2, step)

    def reset(self):
        self.step = self.first


def ended_by(error, task):
    """What settles an attempt whose handler raised; None if it is lost, or the drain hands it back."""
    if isinstance(error, Cancelled):
        return dict(cancelled=ws.Cancelled(reason=sayable(error, MAX_REASON_BYTES)))
    if isinstance(error, Stopped) and task.why:
        return None
    if not isinstance(error, Failure):
        error = Failure("handler_error", "".join(traceback.format_exception_only(type(error), error)).strip())
    return failed(error)


def failed(error):
    """A Failure as the event that settles the attempt."""
    details = ""
    if error.details is not None:
        try:
            details = to_json(error.details)
        except (TypeError, ValueError, RecursionError):
            details = to_json(repr(error.details))
    if len(details) > MAX_DETAILS_BYTES:
        details = ""
    told = task_pb2.TaskError(
        code=sayable(error.code, MAX_CODE_BYTES) or "handler_error",
        message=sayable("" if error.message is None else error.message, MAX_MESSAGE_BYTES),
        retryable=bool(error.retryable),
        details_json=sayable(details),
    )
    return dict(failed=task_pb2.Failed(error=told))


def sayable(value, most_bytes=None):
    """As text that a frame can hold."""
    return str(value).encode(errors="replace")[:most_bytes].decode(errors="ignore")
