package sources_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/archive"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/exportsim"
)

// sparing reads small pages of a source.
type sparing struct {
	sources.Source
	pageMax int
}

func (s sparing) Read(ctx context.Context, piece sources.Piece, cursor string) (sources.Page, error) {
	piece.PageMax = s.pageMax
	page, err := s.Source.Read(ctx, piece, cursor)
	if n := len(page.Keys); err == nil && n > s.pageMax {
		err = fmt.Errorf("a page has %d keys", n)
	}
	return page, err
}

func TestEverySourceKeepsToPageMax(t *testing.T) {
	exported, _ := exportsim.OfItems(17)
	var list strings.Builder
	sim := dynamosim.New(dynamosim.Options{})
	parked := &parkedTable{keys: map[string]change.Key{}}
	for i, key := range makeTable(t, sim, types.ScalarAttributeTypeS, 17) {
		fmt.Fprintf(&list, "USER#%d/a\n\n", i)
		parked.keys["likes/"+key.String()] = key
	}
	dir := t.TempDir()
	writer := newArchive(t, archive.Config{Dir: dir})
	records, _ := streamRecords(t, 0, 17)
	write(t, writer, records)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	scan, err := sources.NewScan(t.Context(), sources.ScanConfig{Client: sim, Table: "app", Keys: blogKeys, Segments: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []sources.Source{
		scan, openExport(t, "s3://exports", &exportsim.Client{Bucket: exported}), openKeys(t, keyFile(t, list.String()), blogKeys),
		openArchive(t, dir),
		sources.NewParked("app", parked),
	} {
		want, _ := readAll(t, source, nil)
		for _, pageMax := range []int{1, 4, 1_000_000} {
			got, sum := readAll(t, sparing{source, pageMax}, nil)
			if diff := cmp.Diff(want, got); diff != "" || len(got) != 17 || sum.Items != 17 {
				t.Errorf("%s, pages of %d: %d items, keys (-want +got)\n%s", source.Describe(), pageMax, sum.Items, diff)
			}
		}
	}
}
