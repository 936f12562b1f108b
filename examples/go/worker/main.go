// A worker that greets. See ../README.md.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"reeve.example/reeveworker"
)

func greet(_ context.Context, task *reeveworker.Task) (any, error) {
	var args struct{ Name string }
	if err := task.Args(&args); err != nil {
		return nil, err
	}
	if args.Name == "" {
		return nil, &reeveworker.Failure{Code: "no_name", Message: "args.name is missing"}
	}
	for at, word := range []string{"thinking", "writing", "signing"} {
		// An error: the task is cancelled or lost, or the worker has to leave.
		if err := task.Wait(10 * time.Millisecond); err != nil {
			return nil, err
		}
		if err := task.Progress(float64(at+1)/3, word); err != nil {
			return nil, err
		}
	}
	return map[string]string{"greeting": "Hello, " + args.Name + "!"}, nil
}

func main() {
	address := os.Getenv("REEVE_ADDRESS")
	if address == "" {
		address = "127.0.0.1:7450"
	}
	worker := &reeveworker.Worker{
		Address:  address,
		Handlers: map[string]reeveworker.Handler{"agent": greet},
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
