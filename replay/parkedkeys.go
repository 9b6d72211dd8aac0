package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// ParkedKeys lists the keys of the items that have something parked, as the state table
// has them now. A record that could not be read has the zero Key.
type ParkedKeys func(ctx context.Context) ([]change.Key, error)

// Parked is the source of the keys of parked records. They are listed anew for each
// page: what was worked off may not be parked any more.
type Parked struct {
	table string
	list  ParkedKeys
}

// NewParked makes a Parked of a table's parked records.
func NewParked(table string, list ParkedKeys) *Parked { return &Parked{table, list} }

// Describe names the table.
func (p *Parked) Describe() string { return "parked records of " + p.table }

const parkedPiece = "parked"

// Pieces lists the only piece.
func (p *Parked) Pieces(ctx context.Context) ([]Piece, error) {
	keys, _, err := p.sorted(ctx)
	return []Piece{{Name: parkedPiece, Items: int64(len(keys))}}, err
}

// sorted lists each key once, and counts records that have none.
func (p *Parked) sorted(ctx context.Context) (keys []change.Key, unreadable int64, err error) {
	all, err := p.list(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("listing what is parked: %w", err)
	}
	for _, key := range all {
		if key == (change.Key{}) {
			unreadable++
			continue
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b change.Key) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(keys), unreadable, nil
}

// Read returns the keys that follow the cursor, which is a key. Records that
// could not be read have no key: they count as skipped, with the last page.
func (p *Parked) Read(ctx context.Context, piece Piece, cursor string) (Page, error) {
	if piece.Name != parkedPiece {
		return Page{}, fmt.Errorf("%q is no piece of %s", piece.Name, p.Describe())
	}
	keys, unreadable, err := p.sorted(ctx)
	if err != nil {
		return Page{}, err
	}
	first, found := slices.BinarySearchFunc(keys, cursor, func(key change.Key, cursor string) int { return strings.Compare(key.String(), cursor) })
	if found {
		first++
	}
	keys = keys[first:]
	most := piece.pageMax()
	page := Page{Keys: keys[:min(len(keys), most)], Next: cursor, Last: len(keys) <= most}
	page.Items = int64(len(page.Keys))
	if len(page.Keys) > 0 {
		page.Next = page.Keys[len(page.Keys)-1].String()
	}
	if page.Last {
		page.Skipped = unreadable
	}
	return page, nil
}
