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


deaf_running = 0


def deaf(task):
    global deaf_running
    beside = deaf_running
    deaf_running += 1
    time.sleep(task.args["ms"] / 1000)
    deaf_running -= 1
    return {"beside": beside}


def output(task):
    for n in range(task.args["count"]):
        task.output({"n": n, "text": "x" * task.args["bytes"]})
    return {"outputs": task.args["count"]}


handlers = {
    "conformance.echo": echo,
    "conformance.sleep": sleep,
    "conformance.fail": fail,
    "conformance.deaf": deaf,
    "conformance.output": output,
}
Worker(os.environ["REEVE_ADDRESS"], handlers, slots=16, drain_grace_seconds=1).run()
