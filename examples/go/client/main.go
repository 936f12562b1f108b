// Submits a task, follows it, and prints its result; `client cancel TASK_ID` cancels one. See ../README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	reevev1 "reeve.example/gen/reeve/v1"
)

func cancel(ctx context.Context, tasks reevev1.TaskServiceClient, taskID string) error {
	answer, err := tasks.Cancel(ctx, &reevev1.CancelRequest{
		TaskId: taskID,
		// Made once per wish to cancel, and kept over retries.
		RequestId: fmt.Sprintf("by-hand-%d", time.Now().UnixNano()),
		Reason:    &reevev1.Reason{Code: "run.cancelled.user", Summary: "by hand"},
	})
	if err == nil {
		fmt.Println(answer.State)
	}
	return err
}

func greet(ctx context.Context, tasks reevev1.TaskServiceClient, name string) error {
	args, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		return err
	}
	// The same key is the same task, however often this is run; so a call whose answer was lost may be made again.
	submitted, err := tasks.Submit(ctx, &reevev1.SubmitRequest{
		IdempotencyKey:  "greet " + name,
		ActionKind:      "agent",
		ArgsForm:        &reevev1.SubmitRequest_ArgsJson{ArgsJson: string(args)},
		ExecutionTarget: reevev1.ExecutionTarget_EXECUTION_TARGET_HOST,
	})
	if err != nil {
		return err
	}
	taskID := submitted.Task.TaskId
	fmt.Println(submitted.Outcome, taskID)
	watch, err := tasks.Watch(ctx, &reevev1.WatchRequest{Scope: &reevev1.WatchRequest_TaskId{TaskId: taskID}})
	if err != nil {
		return err
	}
	for {
		told, err := watch.Recv()
		if errors.Is(err, io.EOF) {
			break // the task is over
		}
		if err != nil {
			return err
		}
		if event := told.GetEvent(); event != nil {
			fmt.Println(event.Type, event.PayloadJson)
		}
	}
	got, err := tasks.Get(ctx, &reevev1.GetRequest{TaskId: taskID, View: reevev1.TaskView_TASK_VIEW_FULL})
	if err != nil {
		return err
	}
	fmt.Println(got.Task.Status, got.Task.ResultJson)
	return nil
}

func run() error {
	address := os.Getenv("REEVE_ADDRESS")
	if address == "" {
		address = "127.0.0.1:7450"
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	tasks, ctx := reevev1.NewTaskServiceClient(conn), context.Background()
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "cancel":
		return cancel(ctx, tasks, args[1])
	case len(args) == 1:
		return greet(ctx, tasks, args[0])
	default:
		return greet(ctx, tasks, "Ada")
	}
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
