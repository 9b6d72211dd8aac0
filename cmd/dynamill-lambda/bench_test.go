package main

import (
	"os"
	"testing"
	"time"
)

// BenchmarkInit measures from the start of the process to its first request for
// an invocation, on a table whose rules are registered, and the size of the program.
func BenchmarkInit(b *testing.B) {
	w := newWorld(b)
	w.engine(groupRules)
	info, err := os.Stat(built(b))
	w.must(err)
	var total time.Duration
	for b.Loop() {
		started := time.Now()
		p := w.launch()
		p.ready()
		total += time.Since(started)
		b.StopTimer()
		w.must(p.cmd.Process.Kill())
		p.ended <- <-p.ended
		b.StartTimer()
	}
	b.ReportMetric(0, "ns/op") // ending the process would be in it
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/start")
	b.ReportMetric(float64(info.Size())/1e6, "MB")
}
