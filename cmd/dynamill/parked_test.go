package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/projections"
)

// parkedWithoutRules looks at what is parked where there is no rule file.
func (w *world) parkedWithoutRules() {
	w.t.Helper()
	table := []string{"--table", w.table, "--endpoint", w.endpoint}
	code, stdout, stderr := command(w.t, append([]string{"parked", "list", "--json"}, table...)...)
	var listed struct{ Parked []parkedEntry }
	if err := json.Unmarshal([]byte(stdout), &listed); code != exitDone || err != nil || len(listed.Parked) == 0 {
		w.t.Fatalf("parked list: exit code %d, %v, %s%s", code, err, stdout, stderr)
	}
	first := listed.Parked[0]
	code, stdout, stderr = command(w.t, append([]string{"parked", "show", first.ID}, table...)...)
	if code != exitDone || !strings.Contains(stdout, first.Reason) {
		w.t.Errorf("parked show: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr = command(w.t, append([]string{"parked", "show", "nothing"}, table...)...); code != exitInvalid {
		w.t.Errorf("parked show of nothing: exit code %d, %s", code, stderr)
	}
	code, _, stderr = command(w.t, "parked", "list", "--table", w.table, "--state-table", w.table+"-other", "--endpoint", w.endpoint)
	if code != exitEnvironment || !strings.Contains(stderr, "no state table") {
		w.t.Errorf("without a state table: exit code %d, %s", code, stderr)
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
	if code != exitDone || !strings.Contains(stdout, "cannot be retried  record/1  a record that could not be read: discard it") {
		t.Errorf("parked retry: exit code %d, %s%s", code, stdout, stderr)
	}
	if ids := w.parkedIDs(); len(ids) != 1 {
		t.Errorf("parked are %v", ids)
	}
	if code, stdout, stderr = w.call("parked", "discard", "record/1"); code != exitDone || len(w.parkedIDs()) != 0 {
		t.Errorf("parked discard: exit code %d, %s%s", code, stdout, stderr)
	}
}
