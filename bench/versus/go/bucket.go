package main

import (
	"sync/atomic"
	"time"
)

// bucket is a token bucket in one word: 40 bits of milliseconds since start, 24 bits of tokens, changed by compare-and-swap.
type bucket struct {
	word        uint64
	_           [56]byte
	start       time.Time
	burst       uint64
	tokensPerMs uint64
}

func newBucket(tokensPerMs, burst uint64) *bucket {
	return &bucket{word: burst, start: time.Now(), burst: burst, tokensPerMs: tokensPerMs}
}

// nowMs reads the clock: the monotonic part alone.
func (b *bucket) nowMs() uint64 {
	return uint64(time.Since(b.start) / time.Millisecond)
}

// take takes one token at nowMs if it is there.
func (b *bucket) take(nowMs uint64) bool {
	for {
		seen := atomic.LoadUint64(&b.word)
		at, tokens := seen>>24, seen&(1<<24-1)
		if nowMs > at {
			tokens += (nowMs - at) * b.tokensPerMs
			if tokens > b.burst {
				tokens = b.burst
			}
			at = nowMs
		}
		if tokens == 0 {
			return false
		}
		if atomic.CompareAndSwapUint64(&b.word, seen, at<<24|(tokens-1)) {
			return true
		}
	}
}
