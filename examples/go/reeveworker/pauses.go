package reeveworker

import (
	"math/rand"
	"time"

	reevev1 "reeve.example/gen/reeve/v1"
)

const (
	firstReconnect = 100 * time.Millisecond
	firstRepeat    = 25 * time.Millisecond
	firstAsk       = 250 * time.Millisecond
	longestPause   = 5 * time.Second
)

// pauses are those between tries: each about twice as long as the one before.
type pauses struct{ first, last time.Duration }

func (p *pauses) next(atLeast time.Duration) time.Duration {
	switch {
	case p.last == 0:
		p.last = p.first
	case p.last < longestPause/2:
		p.last *= 2
	default:
		p.last = longestPause
	}
	return atLeast + p.last/2 + time.Duration(rand.Int63n(int64(p.last/2)))
}

func (p *pauses) reset() { p.last = 0 }

// hint is the server's wish for the next try.
func hint(refusal *reevev1.Refusal) time.Duration { return refusal.GetRetryAfter().AsDuration() }
