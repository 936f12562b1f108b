"""What `reeve_worker.py` does where no server is needed to see it: `python -m unittest discover -s examples/python`."""

import sys
import threading
import time
import unittest

from reeve.v1 import error_reason_pb2 as errors, worker_service_pb2 as ws
from reeve_task import Cancelled, Draining, Failure, LeaseLost, Pauses
from reeve_worker import Worker


def raising(error):
    def handler(task):
        raise error

    return handler


class Undescribed(Failure):
    def __init__(self):
        """Without the attributes of a Failure."""


class WithoutText(Exception):
    def __str__(self):
        raise RuntimeError("no text either")


def offered(worker, epoch=1, **claim):
    """The task of a claim that has just come."""
    claim = ws.Claim(task_id="t", generation=1, epoch=epoch, action_kind="k", **claim)
    with worker.lock:
        worker.hear(ws.WorkResponse(claims=ws.Claims(claims=[claim])))
        return worker.tasks["t"]


def judged(worker, task, through, *refused):
    """`refused`: number and reason of each event that was."""
    rejected = [ws.RejectedEvent(event_seq=seq, refusal=errors.Refusal(reason=reason)) for seq, reason in refused]
    verdict = ws.TaskVerdict(task_id="t", epoch=task.claim.epoch, judged_through=through, rejected=rejected)
    with worker.lock:
        worker.hear(ws.WorkResponse(verdicts=ws.EventVerdicts(verdicts=[verdict])))
        worker.lock.notify_all()


class Endings(unittest.TestCase):
    """Every claim gets an ending, whatever its handler does."""

    def ending_of(self, handler, **claim):
        worker = Worker("nowhere", {"k": handler})
        task = offered(worker, **claim)
        with worker.lock:
            self.assertTrue(worker.lock.wait_for(lambda: task.phase == "settling", 10))
        self.assertFalse(task.running)
        return task.events[-1]

    def test_a_failure_says_what_can_be_said_of_it(self):
        for failure, code, message in [
            (Failure(404, "not found"), "404", "not found"),
            (Failure("x", None), "x", ""),
            (Failure("x", "m", details={1, 2}), "x", "m"),
            (Failure("x", "m", details=float("nan")), "x", "m"),
            (Failure("x", "m", details="y" * 100_000), "x", "m"),
            (Failure("x", "bad \ud800 bytes", details="\ud800"), "x", "bad ? bytes"),
            (Failure("é" * 100, "m"), "é" * 64, "m"),
            (Failure("", "m"), "handler_error", "m"),
            (Failure("x", "m", retryable=None), "x", "m"),
        ]:
            with self.subTest(code, message=message):
                error = self.ending_of(raising(failure)).failed.error
                self.assertEqual((error.code, error.message, error.retryable), (code, message, bool(failure.retryable)))

    def test_whatever_else_a_handler_does_is_a_failure_to_be_tried_again(self):
        def checkpoint(task):
            return task.checkpoint

        reads_long_numbers = not hasattr(sys, "get_int_max_str_digits")  # older Pythons
        for name, handler, claim in [
            ("exit", lambda task: sys.exit(3), {}),
            ("interrupt", raising(KeyboardInterrupt()), {}),
            ("no text", raising(WithoutText()), {}),
            ("no Failure at heart", raising(Undescribed()), {}),
            ("not lost", raising(LeaseLost("nobody said so")), {}),
            ("not draining", raising(Draining("nobody said so")), {}),
            ("no UTF-8", lambda task: "\ud800", {}),
            ("no JSON", lambda task: {1, 2}, {}),
            ("deep checkpoint", checkpoint, dict(checkpoint_json="[" * 5000 + "]" * 5000)),
            ("long number", checkpoint, dict(checkpoint_json="{" if reads_long_numbers else "1" * 5000)),
            ("bad args", lambda task: task.args, dict(args_json="{")),
        ]:
            with self.subTest(name):
                error = self.ending_of(handler, **claim).failed.error
                self.assertEqual((error.code, error.retryable), ("handler_error", True))

    def test_a_cancel_that_the_handler_makes_up_is_one(self):
        self.assertEqual(self.ending_of(raising(Cancelled("enough \ud800"))).cancelled.reason, "enough ?")


class Strays(unittest.TestCase):
    def setUp(self):
        self.go_on, self.running, self.most = threading.Semaphore(0), 0, 0
        self.worker = Worker("nowhere", {"k": self.deaf})

    def deaf(self, task):
        self.running += 1
        self.most = max(self.most, self.running)
        self.go_on.acquire()
        self.running -= 1

    def wait(self, holds):
        with self.worker.lock:
            self.assertTrue(self.worker.lock.wait_for(holds, 10))

    def test_a_task_that_comes_again_waits_for_its_old_handler(self):
        first = offered(self.worker)
        self.wait(lambda: first.last_seq == 2)
        second = offered(self.worker, epoch=2)
        third = offered(self.worker, epoch=3)
        self.wait(lambda: not second.running)
        self.assertEqual((first.phase, third.last_seq, self.worker.strays), ("over", 1, {first}))
        self.go_on.release()
        self.wait(lambda: third.last_seq == 2)
        self.go_on.release()
        self.wait(lambda: third.phase == "settling")
        self.assertEqual((self.most, self.worker.strays), (1, set()))

    def test_a_cancel_meanwhile_is_obeyed(self):
        first = offered(self.worker)
        self.wait(lambda: first.last_seq == 2)
        second = offered(self.worker, epoch=2)
        with self.worker.lock:
            notice = ws.CancelNotice(task_id="t", epoch=2, cancellation_token="c")
            self.worker.hear(ws.WorkResponse(cancels=ws.Cancels(cancels=[notice])))
            self.worker.lock.notify_all()
        self.wait(lambda: second.phase == "settling")
        self.assertEqual([event.WhichOneof("event") for event in second.events], ["accepted", "cancelled"])
        self.go_on.release()


class Refusals(unittest.TestCase):
    def settled(self, worker):
        task = offered(worker)
        with worker.lock:
            self.assertTrue(worker.lock.wait_for(lambda: task.phase == "settling", 10))
        return task

    def test_pauses_grow(self):
        pauses = Pauses(1)
        for longest in (1, 2, 4, 5, 5):
            self.assertTrue(longest / 2 <= pauses.next() <= longest)
        self.assertGreaterEqual(pauses.next(at_least_seconds=60), 60)

    def test_what_was_not_judged_rests_once_and_what_was_ends_the_growth(self):
        worker = Worker("nowhere", {"k": lambda task: None})
        task = self.settled(worker)
        with worker.lock:
            task.sent_through = task.last_seq
            for seq in (2, 3):
                judged(worker, task, 0, (seq, errors.ERROR_REASON_EVENT_GAP))
            self.assertEqual((task.resting, task.sent_through, task.repeats.step), (True, 3, 0.05))
            self.assertTrue(worker.lock.wait_for(lambda: not task.resting, 10))
            self.assertEqual(task.sent_through, 0)
            judged(worker, task, 1)
            self.assertEqual((task.sent_through, task.repeats.step), (1, 0.025))

    def test_a_drain_hands_back_a_result_that_waits_for_children(self):
        worker = Worker("nowhere", {"k": lambda task: None}, drain_grace_seconds=0)
        task = self.settled(worker)
        refusal = errors.ERROR_REASON_CHILDREN_ACTIVE
        judged(worker, task, 3, (3, refusal))
        drain = threading.Thread(target=worker._drain, daemon=True)
        drain.start()
        with worker.lock:  # it has asked once more
            self.assertTrue(worker.lock.wait_for(lambda: worker.leaving, 10))
            self.assertEqual((task.phase, task.last_seq), ("settling", 4))
        judged(worker, task, 4, (4, refusal))
        self.assertEqual(task.phase, "releasing")
        with worker.lock:
            loss = ws.LeaseLoss(task_id="t", epoch=1, cause=ws.LEASE_LOSS_CAUSE_RELEASED)
            worker.hear(ws.WorkResponse(leases_lost=ws.LeasesLost(losses=[loss])))
            worker.lock.notify_all()
        drain.join(10)
        self.assertFalse(drain.is_alive())


class Streams(unittest.TestCase):
    def test_a_defect_on_the_stream_ends_the_worker(self):
        worker = Worker("127.0.0.1:1", {"k": print})
        worker.hello = lambda: 1 / 0
        with self.assertRaises(ZeroDivisionError):
            worker.run()


if __name__ == "__main__":
    unittest.main()
