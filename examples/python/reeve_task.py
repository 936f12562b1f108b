"""One claim of a Reeve worker: what its handler sees and says, and why it may have to stop."""

import functools
import json
import threading
from collections import deque

from reeve.v1 import task_pb2, worker_service_pb2 as ws

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
        self.args = json.loads(claim.args_json or "{}")
        self.checkpoint = json.loads(claim.checkpoint_json) if claim.checkpoint_json else None
        self.why = None  # the Stopped to raise
        self.events = deque()  # said and unanswered, encoded once
        self.last_seq = self.sent_through = self.answered_through = 0
        self.phase = "open"  # open, settling, releasing, over
        self.running = self.acknowledged = self.was_refused = False
        self.cancellation_token = None
        self.settlement = None

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


def failed(error):
    """A Failure as the event that settles the attempt."""
    details = to_json(error.details) if error.details is not None else ""
    message = error.message[:4096]
    told = task_pb2.TaskError(code=error.code, message=message, retryable=error.retryable, details_json=details)
    return dict(failed=task_pb2.Failed(error=told))
