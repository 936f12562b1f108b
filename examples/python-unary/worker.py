"""A worker without a stream: takes what is queued, task by task, and reports by unary calls. Stubs: see README.md."""
import os, time, uuid

import grpc
from reeve.v1 import task_pb2, task_service_pb2 as ts, task_service_pb2_grpc, worker_service_pb2 as ws, worker_service_pb2_grpc

channel = grpc.insecure_channel(os.environ.get("REEVE_ADDRESS", "127.0.0.1:7450"))
tasks, workers = task_service_pb2_grpc.TaskServiceStub(channel), worker_service_pb2_grpc.WorkerServiceStub(channel)
queued = ts.TaskFilter(queue=os.environ.get("QUEUE", "default"), statuses=[task_pb2.TASK_STATUS_QUEUED])

for task in tasks.List(ts.ListRequest(filter=queued, order=ts.LIST_ORDER_OLDEST_FIRST)).tasks:
    try:
        claim = ts.ClaimIntent(worker_name="python")
        lease = tasks.Transition(ts.TransitionRequest(task_id=task.task_id, idempotency_key=str(uuid.uuid4()), claim=claim)).lease
    except grpc.RpcError as error:  # somebody else was faster
        print(task.task_id, error.details())
        continue
    proof = dict(task_id=task.task_id, generation=lease.generation.number, epoch=lease.epoch, lease_token=lease.lease_token)
    say = lambda number, **event: workers.Report(ws.ReportRequest(events=[ws.WorkerEvent(event_seq=number, **event)], **proof))
    say(1, accepted=ws.Accepted())
    say(2, started=ws.Started())
    time.sleep(0.01)  # the work; report at least every third of the lease's life, without events if there is nothing to say
    if workers.Report(ws.ReportRequest(**proof)).HasField("cancel"):
        say(3, cancelled=ws.Cancelled())
    else:
        say(3, completed=task_pb2.Completed(result_json='{"answer": 42}'))
    print(task.task_id, "reported")
