package sources_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

// parkedTable is what is parked: keys by id.
type parkedTable struct {
	keys    map[string]change.Key
	failure error
}

func (p *parkedTable) CountParked(context.Context) (int, error) { return len(p.keys), p.failure }

func (p *parkedTable) ParkedKeys(_ context.Context, behind string, limit int) (page sources.Page, _ error) {
	page.Last = true
	for _, id := range slices.Sorted(maps.Keys(p.keys)) {
		if id <= behind {
			continue
		}
		if len(page.Keys) == limit {
			page.Last = false
			break
		}
		page.Keys, page.Next = append(page.Keys, p.keys[id]), id
	}
	return page, p.failure
}

func TestParkedKeysAreReadOnceEachThoughTheyAreUnparkedMeanwhile(t *testing.T) {
	parked := &parkedTable{keys: map[string]change.Key{"record/1": {}}} // one that could not be read
	var want []change.Key
	for i := range 1_200 {
		key := change.Key{Partition: fmt.Sprint("USER#", i), Sort: "a/b"}
		want = append(want, key)
		parked.keys["likes/"+key.String()], parked.keys["posts/"+key.String()] = key, key
	}
	source := sources.NewParked("app", parked)
	pieces, err := source.Pieces(t.Context())
	if err != nil || len(pieces) != 1 || pieces[0].Items != 2_401 || source.Describe() != "parked records of app" {
		t.Errorf("%q: %v, %v", source.Describe(), pieces, err)
	}
	var got []change.Key
	cursor, skipped := "", int64(0)
	for last := false; !last; {
		page, err := source.Read(t.Context(), pieces[0], cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range page.Keys {
			delete(parked.keys, "likes/"+key.String())
			delete(parked.keys, "posts/"+key.String())
		}
		got = append(got, page.Keys...)
		cursor, last, skipped = page.Next, page.Last, skipped+page.Skipped
	}
	if diff := cmp.Diff(sortedKeys(want), sortedKeys(got)); diff != "" || skipped != 1 {
		t.Errorf("%d skipped, keys (-want +got):\n%s", skipped, diff)
	}
	if _, err := source.Read(t.Context(), sources.Piece{Name: "x"}, ""); err == nil {
		t.Error("a piece that is none is read")
	}
	failing := sources.NewParked("app", &parkedTable{failure: os.ErrDeadlineExceeded})
	if _, err := failing.Read(t.Context(), pieces[0], ""); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
