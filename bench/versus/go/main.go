// The rivals in Go: golang.org/x/time/rate and a packed word under compare-and-swap, one hot key, one or more goroutines.
// Says "ready", then answers each line "run" with one line of JSON.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	tokensPerMs = 1_000_000
	burst       = 15_000_000
	batch       = 1024
	blocks      = 24
)

type repeat struct {
	Ns      float64 `json:"ns"`
	GrossNs float64 `json:"grossNs"`
	Takes   int     `json:"takes"`
	Allowed int     `json:"allowed"`
}

// taker takes batch tokens, one after the other, and says how many it got.
type taker func() int

func main() {
	limiter := flag.String("limiter", "cas", "cas, cas-coarse or rate")
	goroutines := flag.Int("goroutines", 1, "goroutines on the one key, as many threads")
	repeatMs := flag.Int("ms", 150, "milliseconds a repeat")
	flag.Parse()
	runtime.GOMAXPROCS(*goroutines)
	take := takerFor(*limiter)
	run(take, *goroutines, 300*time.Millisecond)
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() == "run" {
		answer, _ := json.Marshal(median(take, *goroutines, time.Duration(*repeatMs)*time.Millisecond))
		fmt.Println(string(answer))
	}
}

func takerFor(limiter string) taker {
	switch limiter {
	case "rate":
		l := rate.NewLimiter(tokensPerMs*1000, burst)
		return func() int {
			allowed := 0
			for i := 0; i < batch; i++ {
				if l.Allow() {
					allowed++
				}
			}
			return allowed
		}
	case "cas":
		b := newBucket(tokensPerMs, burst)
		return func() int {
			allowed := 0
			for i := 0; i < batch; i++ {
				if b.take(b.nowMs()) {
					allowed++
				}
			}
			return allowed
		}
	case "cas-coarse":
		b := newBucket(tokensPerMs, burst)
		return func() int {
			allowed := 0
			nowMs := b.nowMs()
			for i := 0; i < batch; i++ {
				if b.take(nowMs) {
					allowed++
				}
			}
			return allowed
		}
	}
	fmt.Fprintln(os.Stderr, "no limiter", limiter)
	os.Exit(2)
	return nil
}

// median runs short blocks and answers the middle one, so that a disturbance of a few milliseconds does not count.
func median(take taker, goroutines int, d time.Duration) repeat {
	each := make([]repeat, blocks)
	sum := repeat{}
	for i := range each {
		each[i] = run(take, goroutines, d/blocks)
		sum.Takes += each[i].Takes
		sum.Allowed += each[i].Allowed
	}
	sort.Slice(each, func(a, b int) bool { return each[a].Ns < each[b].Ns })
	sum.Ns = (each[blocks/2-1].Ns + each[blocks/2].Ns) / 2
	sum.GrossNs = sum.Ns
	return sum
}

// run lets all goroutines take for a time. Ns is wall time over the takes of all of them together.
func run(take taker, goroutines int, d time.Duration) repeat {
	var wait sync.WaitGroup
	takes := make([][8]int, goroutines)
	allowed := make([][8]int, goroutines)
	start := time.Now()
	deadline := start.Add(d)
	for g := 0; g < goroutines; g++ {
		wait.Add(1)
		go func(g int) {
			defer wait.Done()
			for time.Now().Before(deadline) {
				allowed[g][0] += take()
				takes[g][0] += batch
			}
		}(g)
	}
	wait.Wait()
	elapsed := float64(time.Since(start).Nanoseconds())
	sum := repeat{}
	for g := range takes {
		sum.Takes += takes[g][0]
		sum.Allowed += allowed[g][0]
	}
	sum.Ns = elapsed / float64(sum.Takes)
	sum.GrossNs = sum.Ns
	return sum
}
