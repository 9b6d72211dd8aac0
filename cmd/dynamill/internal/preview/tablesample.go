package preview

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/tablescan"
)

// sampleSegments is how many parts of the table give equal numbers of items to a sample.
const sampleSegments = 16

// sampleBounds limit a sample. A page has up to 1 MB (DynamoDB API, Scan), which
// takes 128 read units.
type sampleBounds struct{ itemsMax, pagesMax int }

var (
	checkSample = sampleBounds{itemsMax: 1000, pagesMax: 64} // up to 8,192 read units
	planSample  = sampleBounds{itemsMax: 2000, pagesMax: 32} // up to 4,096 read units
)

// tableSample says how much of a table was read.
type tableSample struct {
	items     int
	whole     bool // these are all items of the table
	readUnits float64
}

// sampleSegment is one part of the table, as far as it was read.
type sampleSegment struct {
	number int
	next   tablescan.Key
}

// sampleTable hands items of the table to take, within the bounds. It reads from
// several segments, so that the items come from all over the table's partitions.
func sampleTable(ctx context.Context, client tablescan.Client, table string, bounds sampleBounds, take func(change.Item) error) (s tableSample, err error) {
	scan := &tablescan.Table{Client: client, TableName: table, Segments: sampleSegments, EventuallyConsistent: true}
	segments := make([]*sampleSegment, sampleSegments)
	for i := range segments {
		segments[i] = &sampleSegment{number: i}
	}
	for pages := 0; len(segments) > 0; {
		var unfinished []*sampleSegment
		share := (bounds.itemsMax - s.items + len(segments) - 1) / len(segments)
		for _, segment := range segments {
			limit := min(share, bounds.itemsMax-s.items)
			if limit == 0 || pages == bounds.pagesMax {
				return s, nil
			}
			page, err := scan.Read(ctx, segment.number, segment.next, limit)
			if err != nil {
				return s, err
			}
			pages++
			for _, item := range page.Items {
				if err := take(attributes.ItemFromTable(item)); err != nil {
					return s, err
				}
			}
			s.items += len(page.Items)
			s.readUnits += page.ReadUnits
			if segment.next = page.Next; segment.next != nil {
				unfinished = append(unfinished, segment)
			}
		}
		segments = unfinished
	}
	s.whole = true
	return s, nil
}
