package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// ParkedKeys says which items have something parked, as the state table has it now.
type ParkedKeys interface {
	// ParkedKeys lists a page of at most limit parked records that are behind an id
	// in the order of their ids. The empty id is before all others.
	ParkedKeys(ctx context.Context, behind string, limit int) (ParkedPage, error)
	CountParked(ctx context.Context) (int, error)
}

// ParkedPage is a page of parked records.
type ParkedPage struct {
	Keys []change.Key // of their items; the zero Key of a record that could not be read
	Next string       // the id of the last of them
	More bool         // others may follow
}

// Parked is the source of the keys of parked records. An item that is parked
// under several rules may come again on a later page if it is still parked then.
type Parked struct {
	table  string
	parked ParkedKeys
}

// NewParked makes a Parked of a table's parked records.
func NewParked(table string, parked ParkedKeys) *Parked { return &Parked{table, parked} }

// Describe names the table.
func (p *Parked) Describe() string { return "parked records of " + p.table }

const parkedPiece = "by-id"

// Pieces lists the only piece.
func (p *Parked) Pieces(ctx context.Context) ([]Piece, error) {
	n, err := p.parked.CountParked(ctx)
	return []Piece{{Name: parkedPiece, Items: int64(n)}}, err
}

// Read returns the keys that follow the cursor, which is an id. Records that
// could not be read have no key: they count as skipped.
func (p *Parked) Read(ctx context.Context, piece Piece, cursor string) (Page, error) {
	if piece.Name != parkedPiece {
		return Page{}, fmt.Errorf("%q is no piece of %s", piece.Name, p.Describe())
	}
	listed, err := p.parked.ParkedKeys(ctx, cursor, piece.pageMax())
	if err != nil {
		return Page{}, err
	}
	page := Page{Next: cursor, Last: !listed.More}
	if len(listed.Keys) > 0 {
		page.Next = listed.Next
	}
	for _, key := range listed.Keys {
		if key == (change.Key{}) {
			page.Skipped++
			continue
		}
		page.Keys = append(page.Keys, key)
	}
	slices.SortFunc(page.Keys, func(a, b change.Key) int { return strings.Compare(a.String(), b.String()) })
	page.Keys = slices.Compact(page.Keys)
	page.Items = int64(len(page.Keys))
	return page, nil
}
