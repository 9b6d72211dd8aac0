package handlers

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofTable is a record as another table's stream tells it.
func ofTable(name, record string) string {
	return strings.Replace(record, ":table/app/", ":table/"+name+"/", 1)
}

// TestAnotherTablesRecordsAreRefused gives a function of one table what another one's stream holds:
// its positions would hide true records of items with the same keys.
func TestAnotherTablesRecordsAreRefused(t *testing.T) {
	for name, payload := range map[string]string{
		"a stream event": event(insert("a", "1"), ofTable("staging", insert("b", "2"))),
		"a late batch":   late(event(ofTable("app2", insert("a", "1")))),
		"a pipe":         list(ofTable("staging", malformed("a", "1"))),
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			h := newHandler(t, e, func(c *Config) { c.Table = "app" })
			_, err := h.Invoke(t.Context(), []byte(payload))
			if refused := new(PayloadError); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "table app") {
				t.Errorf("error %v, want one that names the function's table", err)
			}
			if len(e.calls)+len(e.parked) > 0 {
				t.Errorf("calls %q, parked %+v", e.calls, e.parked)
			}
		})
	}
}

// TestAMessageThatStrayedIsParkedAlone puts messages of other streams among a queue's good ones. They
// are parked, and no item is rederived for a position that is not of its stream.
func TestAMessageThatStrayedIsParkedAlone(t *testing.T) {
	for name, c := range map[string]struct {
		stray, code string
		calls       []string
	}{
		"of another table": {ofTable("staging", insert("b", "7")), codeTable, []string{"park record.table", "process 1 9"}},
		"of a stream without images": {keysOnly(insert("b", "7")), codeImages,
			[]string{"park record.images", "rederive USER#b/PROFILE@7", "process 1 9"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			h := newHandler(t, e, func(c *Config) { c.Table = "app" })
			answer, err := h.Invoke(t.Context(), []byte(event(message("m1", insert("a", "1")), message("m2", c.stray),
				message("m3", insert("c", "9")))))
			if err != nil || string(answer) != `{"batchItemFailures":[]}` {
				t.Fatal(string(answer), err)
			}
			if diff := cmp.Diff(c.calls, e.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if len(e.parked) != 1 || e.parked[0].Code != c.code {
				t.Errorf("parked %+v, want one with code %s", e.parked, c.code)
			}
		})
	}
}
