package projections

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// weighed counts the bytes that queries send.
type weighed struct {
	table.Client
	pageMax, pages int // bytes, number
}

func (c *weighed) Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := c.Client.Query(ctx, in, opts...)
	if err != nil {
		return out, err
	}
	bytes := 0
	for _, item := range out.Items {
		for name, value := range item {
			if text, ok := value.(*ddb.AttributeValueMemberS); ok {
				bytes += len(name) + len(text.Value)
			}
		}
	}
	c.pageMax, c.pages = max(c.pageMax, bytes), c.pages+1
	return out, nil
}

// TestParkedRecordsAreListedWithoutTheirText parks records of 300 KB, of which
// three fill a page of DynamoDB's.
func TestParkedRecordsAreListedWithoutTheirText(t *testing.T) {
	const records, pageBytesMax = 12, 4 << 10
	w := newWorld(t, socialRules)
	parking := w.seeded()
	raw := bytes.Repeat([]byte("x"), rawBytesMax)
	var want []string
	for i := range records {
		id := fmt.Sprintf("%02d", i)
		want = append(want, recordID+id)
		if err := parking.ParkRecord(w.ctx, id, "record.value", "the number is none", raw); err != nil {
			t.Fatal(err)
		}
	}
	client := &weighed{Client: w.sim}
	e := w.engine(client)
	inspected, _, err := inspect.OpenParked(w.ctx, client, "app-dynamill")
	if err != nil {
		t.Fatal(err)
	}
	idsOf := func(each func(context.Context, func([]inspect.Parked) error) error) (ids []string) {
		err := each(w.ctx, func(page []inspect.Parked) error {
			for _, p := range page {
				ids = append(ids, p.ID)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return ids
	}
	for name, list := range map[string]func() []string{
		"EachParked": func() []string { return idsOf(e.EachParked) },
		"OpenParked": func() []string { return idsOf(inspected.EachParked) },
		"ParkedBehind": func() (ids []string) {
			behind := ""
			for more := true; more; {
				var page []inspect.Parked
				if page, more, err = e.ParkedBehind(w.ctx, behind, 2); err != nil || len(page) > 2 {
					t.Fatalf("a page of %d, %v", len(page), err)
				}
				for _, p := range page {
					ids, behind = append(ids, p.ID), p.ID
				}
			}
			return ids
		},
		"CountParked": func() []string {
			n, err := e.CountParked(w.ctx)
			if n != records || err != nil {
				t.Errorf("counted %d, %v; want %d", n, err, records)
			}
			return want
		},
		"Inspect": func() []string {
			found, err := inspect.Read(w.ctx, client, "app-dynamill")
			if err != nil || found.Parked["record.value"] != records {
				t.Errorf("inspected %+v, %v; want %d", found, err, records)
			}
			return want
		},
	} {
		client.pageMax, client.pages = 0, 0
		if got := list(); !slices.Equal(got, want) {
			t.Errorf("%s lists %q, want %q", name, got, want)
		}
		if client.pageMax > pageBytesMax || client.pages < records/3 {
			t.Errorf("%s received %d pages of up to %d bytes, want at least %d of at most %d", name, client.pages, client.pageMax, records/3,
				pageBytesMax)
		}
	}
	if p, err := e.FindParked(w.ctx, want[0]); err != nil || len(p.Raw) != rawBytesMax {
		t.Errorf("FindParked returns %d bytes of text, %v; want all %d", len(p.Raw), err, rawBytesMax)
	}
}
