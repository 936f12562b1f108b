"""What `reeve conformance` asks of a worker. See README.md."""

import os
import time

from reeve_worker import Failure, Worker


def echo(task):
    return task.args


def sleep(task):
    started_at, seconds = time.monotonic(), task.args["ms"] / 1000
    while (left := started_at + seconds - time.monotonic()) > 0:
        task.wait(min(0.05, left))
        task.progress(min(1, (time.monotonic() - started_at) / seconds))
    return {"slept": task.args["ms"]}


def fail(task):
    raise Failure(**task.args)


def output(task):
    for n in range(task.args["count"]):
        task.output({"n": n, "text": "x" * task.args["bytes"]})
    return {"outputs": task.args["count"]}


handlers = {
    "conformance.echo": echo,
    "conformance.sleep": sleep,
    "conformance.fail": fail,
    "conformance.output": output,
}
Worker(os.environ["REEVE_ADDRESS"], handlers, slots=16, drain_grace_seconds=1).run()
