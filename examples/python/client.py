"""Submits a task, follows it, and prints its result; `client.py cancel TASK_ID` cancels one. See README.md."""

import json
import os
import sys
import uuid

import grpc
from reeve.v1 import task_pb2, task_service_pb2 as ts, task_service_pb2_grpc

channel = grpc.insecure_channel(os.environ.get("REEVE_ADDRESS", "127.0.0.1:7450"))
tasks = task_service_pb2_grpc.TaskServiceStub(channel)


def cancel(task_id):
    reason = task_pb2.Reason(code="run.cancelled.user", summary="by hand")
    answer = tasks.Cancel(ts.CancelRequest(task_id=task_id, request_id=str(uuid.uuid4()), reason=reason))
    print(ts.CancelState.Name(answer.state))


def greet(name):
    # The same key is the same task, however often this is run; so a call whose answer was lost may be made again.
    request = ts.SubmitRequest(
        idempotency_key=f"greet {name}",
        action_kind="agent",
        args_json=json.dumps({"name": name}),
        execution_target=task_pb2.EXECUTION_TARGET_HOST,
    )
    answer = tasks.Submit(request)
    task_id = answer.task.task_id
    print(ts.SubmitOutcome.Name(answer.outcome), task_id, flush=True)
    for told in tasks.Watch(ts.WatchRequest(task_id=task_id)):
        if told.HasField("event"):
            print(told.event.type, told.event.payload_json, flush=True)
    task = tasks.Get(ts.GetRequest(task_id=task_id, view=task_pb2.TASK_VIEW_FULL)).task
    print(task_pb2.TaskStatus.Name(task.status), task.result_json)


if sys.argv[1:2] == ["cancel"]:
    cancel(sys.argv[2])
else:
    greet(sys.argv[1] if len(sys.argv) > 1 else "Ada")
