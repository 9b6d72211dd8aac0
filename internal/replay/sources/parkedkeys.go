package sources

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// ParkedKeys says which items have something parked, as the state table has it now.
type ParkedKeys interface {
	// ParkedKeys lists at most limit parked records behind an id, in the order of ids; "" is before all others. The page's
	// cursor is the last id. A record that could not be read has the zero Key.
	ParkedKeys(ctx context.Context, behind string, limit int) (Page, error)
	CountParked(ctx context.Context) (int, error)
}

// Parked is the source of the keys of parked records. The key of an item parked under several rules may come again.
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

// Read returns the keys behind an id. It counts records without a key as skipped.
func (p *Parked) Read(ctx context.Context, piece Piece, cursor string) (Page, error) {
	if piece.Name != parkedPiece {
		return Page{}, fmt.Errorf("%q is no piece of %s", piece.Name, p.Describe())
	}
	page, err := p.parked.ParkedKeys(ctx, cursor, piece.pageMax())
	if err != nil {
		return Page{}, err
	}
	page.Next = cmp.Or(page.Next, cursor)
	listed := len(page.Keys)
	page.Keys = slices.DeleteFunc(page.Keys, func(key change.Key) bool { return key == change.Key{} })
	page.Skipped = int64(listed - len(page.Keys))
	slices.SortFunc(page.Keys, func(a, b change.Key) int { return strings.Compare(a.String(), b.String()) })
	page.Keys = slices.Compact(page.Keys)
	page.Items = int64(len(page.Keys))
	return page, nil
}
