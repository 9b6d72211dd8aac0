package main

import (
	"strings"
	"testing"
)

func TestReportPrintsWhatGoTestPrints(t *testing.T) {
	tests := map[string]struct {
		events  []string
		want    string
		verdict string // part of the error; "" means none
	}{
		"a passing test leaves only the closing line": {
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Output":"PASS\n"}`,
				`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: "ok  \tp\t0.1s\n",
		},
		"a failing test shows what it wrote": {
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: wrong\n"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: "    a_test.go:1: wrong\n--- FAIL: TestA (0.00s)\nFAIL\tp\t0.1s\n",
		},
		"a test cut off by a panic shows what it wrote": {
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want:    "panic: test timed out\n",
			verdict: "no test ran",
		},
		"a skipped test fails the run and is named with its reason": {
			events: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: no endpoint\n"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestB"}`,
			},
			verdict: "p.TestB: b_test.go:9: no endpoint",
		},
		"a package without test files is not a skipped test": {
			events: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}`,
				`{"Action":"skip","Package":"q"}`,
			},
			want: "?   \tq\t[no test files]\n",
		},
		"a run without tests fails": {
			events: []string{
				`{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}`,
				`{"Action":"skip","Package":"q"}`,
			},
			want:    "?   \tq\t[no test files]\n",
			verdict: "no test ran",
		},
		"the compiler's words and foreign lines are passed on": {
			events: []string{
				`{"Action":"build-output","ImportPath":"p","Output":"a.go:1:1: undefined: x\n"}`,
				`go: a line that is not an event`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
			},
			want: "a.go:1:1: undefined: x\ngo: a line that is not an event\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(strings.Join(test.events, "\n") + "\n")); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.want {
				t.Errorf("printed\n%q, want\n%q", out.String(), test.want)
			}
			err := r.verdict()
			switch {
			case test.verdict != "" && (err == nil || !strings.Contains(err.Error(), test.verdict)):
				t.Errorf("verdict %v, want one with %q", err, test.verdict)
			case test.verdict == "" && err != nil:
				t.Errorf("verdict %v, want none", err)
			}
		})
	}
}
