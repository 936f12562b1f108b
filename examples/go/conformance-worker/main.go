// What `reeve conformance` asks of a worker. See ../README.md.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"reeve.example/reeveworker"
)

func echo(_ context.Context, task *reeveworker.Task) (any, error) {
	return json.RawMessage(task.Claim.ArgsJson), nil
}

func sleep(_ context.Context, task *reeveworker.Task) (any, error) {
	var args struct{ Ms float64 }
	if err := task.Args(&args); err != nil {
		return nil, err
	}
	total := time.Duration(args.Ms) * time.Millisecond
	for startedAt := time.Now(); time.Since(startedAt) < total; {
		nap := total - time.Since(startedAt)
		if nap > 50*time.Millisecond {
			nap = 50 * time.Millisecond
		}
		if err := task.Wait(nap); err != nil {
			return nil, err
		}
		fraction := float64(time.Since(startedAt)) / float64(total)
		if fraction > 1 {
			fraction = 1
		}
		if err := task.Progress(fraction, ""); err != nil {
			return nil, err
		}
	}
	return map[string]float64{"slept": args.Ms}, nil
}

func fail(_ context.Context, task *reeveworker.Task) (any, error) {
	var failure reeveworker.Failure
	if err := task.Args(&failure); err != nil {
		return nil, err
	}
	return nil, &failure
}

var deafRunning int32

func deaf(_ context.Context, task *reeveworker.Task) (any, error) {
	var args struct{ Ms float64 }
	if err := task.Args(&args); err != nil {
		return nil, err
	}
	beside := atomic.AddInt32(&deafRunning, 1) - 1
	defer atomic.AddInt32(&deafRunning, -1)
	time.Sleep(time.Duration(args.Ms) * time.Millisecond)
	return map[string]int32{"beside": beside}, nil
}

func output(_ context.Context, task *reeveworker.Task) (any, error) {
	var args struct{ Count, Bytes int }
	if err := task.Args(&args); err != nil {
		return nil, err
	}
	text := strings.Repeat("x", args.Bytes)
	for n := 0; n < args.Count; n++ {
		if err := task.Output(map[string]any{"n": n, "text": text}); err != nil {
			return nil, err
		}
	}
	return map[string]int{"outputs": args.Count}, nil
}

func main() {
	worker := &reeveworker.Worker{
		Address: os.Getenv("REEVE_ADDRESS"),
		Handlers: map[string]reeveworker.Handler{
			"conformance.echo":   echo,
			"conformance.sleep":  sleep,
			"conformance.fail":   fail,
			"conformance.deaf":   deaf,
			"conformance.output": output,
		},
		Slots:      16,
		DrainGrace: time.Second,
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
