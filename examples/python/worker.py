"""A worker that greets. See README.md."""

import logging
import os

from reeve_worker import Failure, Worker


def greet(task):
    name = task.args.get("name")
    if not name:
        raise Failure("no_name", "args.name is missing", retryable=False)
    for at, word in enumerate(["thinking", "writing", "signing"], 1):
        task.wait(0.01)  # raises when the task is cancelled, lost, or the worker has to leave
        task.progress(at / 3, word)
    task.output({"attempt": task.claim.attempt})
    return {"greeting": f"Hello, {name}!"}


logging.basicConfig(level=logging.INFO)
Worker(os.environ.get("REEVE_ADDRESS", "127.0.0.1:7450"), {"agent": greet}, slots=10).run()
