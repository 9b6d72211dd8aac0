package handlers

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// FuzzInvoke gives the handler anything: it must not panic, must take nothing for
// a batch that is no JSON, must account for every record, and must give the
// Processor only records that can be read to the end, and the Rederiver none
// without a key.
func FuzzInvoke(f *testing.F) {
	for _, seed := range []string{
		event(insert("a", "1"), malformed("m", "2"), insert("b", "3")),
		event(message("m1", insert("a", "1")), message("m2", "{")),
		list(insert("a", "1")), list(message("m1", insert("a", "1"))),
		late(event(insert("a", "1"))), late(quoted(event(insert("a", "1"), malformed("m", "2")))),
		event(strings.Replace(insert("a", "1"), `{"S":"a at 1"}`,
			`{"M":{"l":{"L":[{"N":"-1.5e3"},{"B":"AAA="},{"BOOL":true},{"NULL":true}]},"s":{"SS":["\u00e9","\ud83d\ude00"]},"n":{"NS":["1"]},"b":{"BS":["AA=="]}}}`, 1)),
		event(insert("a", "1"))[:200], `{"Records":[null,1.,{"dynamodb":{}}]}`, `[[],[01]]`, `{"window":{}}`, "\"\\u12", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		e := newEngine()
		given := 0
		h := newHandler(t, e, func(cfg *Config) {
			cfg.Processor = processor(func(_ context.Context, records []change.Record) (int, error) {
				given += len(records)
				for _, r := range records {
					if r.Position.IsZero() || r.Key.Partition == "" || r.Key.Sort == "" || r.Old == nil && r.New == nil {
						t.Errorf("half a record: %+v", r)
					}
					checkImages(t, r)
				}
				return len(records), nil
			})
			cfg.Rederiver = rederiver(func(_ context.Context, records []change.Record) error {
				for _, r := range records {
					if r.Key.Partition == "" || r.Key.Sort == "" {
						t.Errorf("a record without a key: %+v", r)
					}
					checkImages(t, r)
				}
				return nil
			})
		})
		answer, err := h.Invoke(t.Context(), payload)
		if err != nil {
			if given > 0 || answer != nil {
				t.Fatalf("%d records and answer %s beside error %v", given, answer, err)
			}
			return
		}
		if !json.Valid(payload) {
			t.Fatal("what is no JSON was taken for a batch")
		}
		if string(answer) != failures() {
			t.Fatalf("nothing failed, but the answer is %s", answer)
		}
		var envelope struct{ Records []json.RawMessage }
		if json.Unmarshal(payload, &envelope) == nil && len(envelope.Records) > 0 && strings.Count(string(payload), `ecords`) == 1 {
			if len(envelope.Records) != given+len(e.parked) {
				t.Fatalf("%d records, %d given and %d parked", len(envelope.Records), given, len(e.parked))
			}
		}
	})
}

// rederiver is a Rederiver from a function.
type rederiver func(ctx context.Context, records []change.Record) error

func (r rederiver) RederiveRecords(ctx context.Context, records []change.Record) error {
	return r(ctx, records)
}

func checkImages(t *testing.T, r change.Record) {
	t.Helper()
	for _, im := range [...]change.Image{r.Old, r.New} {
		if im != nil {
			checkImage(t, im)
		}
	}
}
