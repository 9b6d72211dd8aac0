package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/parked"
	"github.com/dynamill/dynamill/internal/projections"
)

// parkedWithoutRules looks at what is parked where there is no rule file.
func (w *world) parkedWithoutRules() {
	w.t.Helper()
	table := []string{"--table", w.table, "--endpoint", w.endpoint}
	code, stdout, stderr := w.callWith(append([]string{"parked", "list", "--json"}, table...))
	var listed struct{ Parked []parked.Entry }
	if err := json.Unmarshal([]byte(stdout), &listed); code != ending.ExitDone || err != nil || len(listed.Parked) == 0 {
		w.t.Fatalf("parked list: exit code %d, %v, %s%s", code, err, stdout, stderr)
	}
	first := listed.Parked[0]
	code, stdout, stderr = w.callWith(append([]string{"parked", "show", first.ID}, table...))
	if code != ending.ExitDone || !strings.Contains(stdout, first.Reason) {
		w.t.Errorf("parked show: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr = w.callWith(append([]string{"parked", "show", "nothing"}, table...)); code != ending.ExitInvalid {
		w.t.Errorf("parked show of nothing: exit code %d, %s", code, stderr)
	}
	code, _, stderr = w.callWith([]string{"parked", "list", "--table", w.table, "--state-table", w.table + "-other", "--endpoint", w.endpoint})
	if code != ending.ExitEnvironment || !strings.Contains(stderr, "no state table") {
		w.t.Errorf("without a state table: exit code %d, %s", code, stderr)
	}
}

// metered passes requests on to an endpoint, and counts the bytes of its answers.
func metered(t *testing.T, endpoint string) (address string, answered *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	answered = new(atomic.Int64)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // a command that ends hangs up
	proxy.ModifyResponse = func(response *http.Response) error {
		answered.Add(response.ContentLength)
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL, answered
}

// TestLargeParkedRecordsAreNotReadToListThem parks records of 300 KB each, as a
// Lambda function does with records that it cannot read.
func TestLargeParkedRecordsAreNotReadToListThem(t *testing.T) {
	t.Parallel()
	const records, recordBytes, answerBytesMax = 10, 300 << 10, 200 << 10
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()
	engine, err := projections.Open(t.Context(), projections.Config{Client: w.client, Table: w.table, Rules: w.set})
	w.must(err)
	raw := bytes.Repeat([]byte("x"), recordBytes)
	for i := range records {
		w.must(engine.ParkRecord(t.Context(), fmt.Sprint(i), "record.value", "the number is none", raw))
	}
	endpoint, answered := metered(t, w.endpoint)
	w.endpoint = endpoint
	for _, c := range []struct{ args, want string }{
		{"parked list", "record/9"},
		{"parked list --json", `"id": "record/9"`},
		{"parked retry --all", "record/9"},
		{"run --drain", "10 parked"},
		{"replay --from parked", "10 parked"},
		{"status", "parked: 10"},
	} {
		answered.Store(0)
		code, stdout, stderr := w.call(strings.Fields(c.args)...)
		if code != ending.ExitDone || !strings.Contains(stdout, c.want) {
			t.Errorf("%s: exit code %d, want %q in\n%s%s", c.args, code, c.want, stdout, stderr)
		}
		if n := answered.Load(); n > answerBytesMax {
			t.Errorf("%s received %d bytes, want at most %d", c.args, n, answerBytesMax)
		}
	}
	code, stdout, stderr := w.call("parked", "show", "record/9", "--json")
	var shown parked.Entry
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil || code != ending.ExitDone || len(shown.Raw) != recordBytes {
		t.Errorf("parked show: exit code %d, %v, %d bytes of the record; want %d\n%s", code, err, len(shown.Raw), recordBytes, stderr)
	}
}

func TestARecordThatCannotBeReadIsNotRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	w.put(community()...)
	w.drain()
	engine, err := projections.Open(t.Context(), projections.Config{Client: w.client, Table: w.table, Rules: w.set})
	w.must(err)
	w.must(engine.ParkRecord(t.Context(), "1", "record.value", "the number is none", []byte("{}")))
	code, stdout, stderr := w.call("parked", "retry", "--all")
	if code != ending.ExitDone || !strings.Contains(stdout, "cannot be retried  record/1  a record that could not be read: discard it") {
		t.Errorf("parked retry: exit code %d, %s%s", code, stdout, stderr)
	}
	if ids := w.parkedIDs(); len(ids) != 1 {
		t.Errorf("parked are %v", ids)
	}
	if code, stdout, stderr = w.call("parked", "discard", "record/1"); code != ending.ExitDone || len(w.parkedIDs()) != 0 {
		t.Errorf("parked discard: exit code %d, %s%s", code, stdout, stderr)
	}
}
