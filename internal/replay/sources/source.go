package sources

import (
	"context"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/internal/lines"
)

// Source gives keys in pieces that any process can work off in any order, and never images: those may be older than the
// item. A key may come twice, or be that of an item that is gone. Sources are safe for concurrent use.
type Source interface {
	// Describe names the source, the same after a restart: "scan of app, 16 segments", "export s3://b/AWSDynamoDB/0123".
	Describe() string
	// Pieces lists the pieces, always the same ones in the same order.
	Pieces(ctx context.Context) ([]Piece, error)
	// Read returns the page behind a cursor ("" is before the first), which is printable text that survives a restart.
	Read(ctx context.Context, piece Piece, cursor string) (Page, error)
}

var (
	_ Source = (*Scan)(nil)
	_ Source = (*Files)(nil)
	_ Source = (*Parked)(nil)
)

// PageItemsMax is how many items, or lines of a file, a page has at most.
const PageItemsMax = 500

// Piece is a part of a source: a segment of a scan, a file of an export.
type Piece struct {
	Name    string // unique within its source
	Items   int64  // estimate; 0: unknown
	PageMax int    // items that a page may have, for Read; 0: as many as the source takes at once
}

// pageMax is how many items a page may have.
func (p Piece) pageMax() int {
	if p.PageMax > 0 {
		return min(p.PageMax, PageItemsMax)
	}
	return PageItemsMax
}

// Page is a bounded part of a piece. It may hold no keys though it is not the last.
type Page struct {
	Keys      []change.Key
	Items     int64   // items or lines read
	ReadUnits float64 // capacity consumed
	Skipped   int64   // lines that a killed process left torn, parked records that have no key
	Next      string  // the cursor behind this page, also where it is the last
	Last      bool
}

// KeyNames names a table's key attributes; Sort is "" in a table without a sort key.
type KeyNames = lines.KeyNames
