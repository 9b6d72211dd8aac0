package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ErrNotParked is returned for an id under which nothing is parked.
var ErrNotParked = errors.New("nothing is parked under this id")

// Parked is an (item, rule) that is set aside because it can never succeed as it is.
type Parked struct {
	state.Parked // its Raw and With are set by FindParked only

	Rule string // the rule's name, "unique <Entity>" for a locator, or "record" for one that could not be read
	Key  change.Key
	// Claimants are the items that claim a contested target, the winner first. Key is the mirror item, or of a unique value the winner.
	Claimants []change.Key

	contested *audit.ContestedTarget // nil for every other entry
}

// Contested returns the target of an entry for a contested one; nil for every other entry.
func (p *Parked) Contested() *audit.ContestedTarget { return p.contested }

// ParkedReader reads what is parked. It writes nothing.
type ParkedReader struct {
	rows    *table.Reader
	planner *plan.Planner
}

// NewParkedReader reads with the names that a planner knows of rules.
func NewParkedReader(rows *table.Reader, p *plan.Planner) ParkedReader { return ParkedReader{rows, p} }

// A record that could not be read may have 300 KB. So lists are read page by page and without it.

// parkedAttributes are the attributes that a list reads: all but raw and with.
var parkedAttributes = []string{"id", "rule", "item", "code", "reason", "parking", "parkedAt", "position", "value"}

// EachParked calls f with every page of what is parked, sorted by id, without Raw and With. What f changes may or may not follow.
func (pr ParkedReader) EachParked(ctx context.Context, f func(page []Parked) error) error {
	return pr.rows.QueryPages(ctx, listingParked, pr.parkedQuery(table.NewExpression(), parkedAttributes...), func(rows []table.Row) error {
		page, err := pr.readAllParked(ctx, rows)
		if err != nil {
			return err
		}
		return f(slices.DeleteFunc(page, Parked.outlived))
	})
}

// Parked lists what is parked, sorted by id, without Raw and With. EachParked needs less memory.
func (pr ParkedReader) Parked(ctx context.Context) ([]Parked, error) {
	var all []Parked
	err := pr.EachParked(ctx, func(page []Parked) error {
		all = append(all, page...)
		return nil
	})
	return all, err
}

// ParkedBehind lists at most limit parked records behind an id ("": all), sorted by id, without Raw and With. more: others may follow.
func (pr ParkedReader) ParkedBehind(ctx context.Context, id string, limit int) (page []Parked, more bool, err error) {
	c := table.NewExpression()
	in := pr.parkedQuery(c, parkedAttributes...)
	if id != "" {
		in.KeyConditionExpression = new(*in.KeyConditionExpression + c.Format(" AND %n > %v", table.SK, table.Text(state.ParkedKey(id).Sort)))
	}
	in.Limit = new(int32(limit)) //nolint:gosec // of a page
	out, err := pr.rows.Query(ctx, listingParked, in)
	if err != nil {
		return nil, false, err
	}
	page, err = pr.readAllParked(ctx, out.Items)
	return page, len(out.LastEvaluatedKey) > 0, err
}

// CountParked counts what is parked.
func (pr ParkedReader) CountParked(ctx context.Context) (total int, err error) {
	codes, err := pr.ParkedCodes(ctx)
	for _, n := range codes {
		total += n
	}
	return total, err
}

// ParkedCodes counts what is parked by code. It goes page by page and asks for codes alone: a parked record may be large.
func (pr ParkedReader) ParkedCodes(ctx context.Context) (map[string]int, error) {
	codes := map[string]int{}
	err := pr.rows.QueryPages(ctx, countingParked, pr.parkedQuery(table.NewExpression(), "code"), func(rows []table.Row) error {
		for _, item := range rows {
			codes[table.TextOf(item["code"])]++
		}
		return nil
	})
	return codes, err
}

// FindParked reads what is parked under an id, whole. It returns ErrNotParked for an unknown id.
func (pr ParkedReader) FindParked(ctx context.Context, id string) (Parked, error) {
	key := state.ParkedKey(id)
	rows, err := pr.rows.ReadState(ctx, "reading what is parked", []table.Key{key})
	if err != nil {
		return Parked{}, err
	}
	if rows[key] == nil {
		return Parked{}, fmt.Errorf("%s: %w", id, ErrNotParked)
	}
	page, err := pr.readAllParked(ctx, []table.Row{rows[key]})
	if err != nil {
		return Parked{}, err
	}
	return page[0], nil
}

const (
	listingParked  = "listing what is parked"
	countingParked = "counting what is parked"
)

// parkedQuery asks for some attributes of everything that is parked.
func (pr ParkedReader) parkedQuery(c *table.Expression, attributes ...string) *dynamodb.QueryInput {
	in := pr.rows.StateQuery(c.Format("%n = %v", table.PK, table.Text(state.ParkedPartition)), c)
	in.ProjectionExpression = new(c.List(attributes))
	return in
}

// outlived reports whether the target of a row is no longer contested: a worker is about to delete the row.
func (p Parked) outlived() bool { return p.contested != nil && len(p.Claimants) < 2 }

func (pr ParkedReader) readParked(item table.Row) Parked {
	row := state.ReadParked(item)
	p := Parked{Parked: row, Rule: "record", Key: row.Item}
	if t, ok := audit.ReadContested(attributes.ItemFromTable(item)); ok {
		p.contested, p.Value, p.Key = &t, t.Value, t.Target
	}
	if row.Rule != "" { // a record that could not be read has none
		p.Rule = pr.planner.NameOf(row.Rule)
	}
	return p
}

// claimantSetsMax is how many sets of claimants are read at once: one may have 400 KB.
const claimantSetsMax = 100

// readAllParked reads parked records, and the items that claim the contested targets among them.
func (pr ParkedReader) readAllParked(ctx context.Context, rows []table.Row) ([]Parked, error) {
	page := make([]Parked, len(rows))
	for i, item := range rows {
		page[i] = pr.readParked(item)
	}
	for part := range slices.Chunk(page, claimantSetsMax) {
		var keys []table.Key
		for _, p := range part {
			if p.contested != nil {
				keys = append(keys, state.SetKey(*p.contested))
			}
		}
		sets, err := pr.rows.ReadState(ctx, "reading the claimants of contested targets", keys)
		if err != nil {
			return nil, err
		}
		for i := range part {
			part[i].addClaimants(sets)
		}
	}
	return page, nil
}

// addClaimants adds to a contested target the items that claim it, of the rows that were read.
func (p *Parked) addClaimants(rows map[table.Key]table.Row) {
	t := p.contested
	if t == nil {
		return
	}
	set := state.ReadSet(rows[state.SetKey(*t)], t.Value != "")
	for _, text := range set.Sources {
		p.Claimants = append(p.Claimants, change.ParseKey(text))
	}
	if t.Value != "" && len(p.Claimants) > 0 {
		p.Key = p.Claimants[0] // to rederive it updates the list
	}
	p.Reason = host.ContentionReason(*t, set.Sources)
}

// OpenParked begins to read what is parked, and needs no rules. It also returns the name of the user's table. Where nothing has run yet
// it returns Read's *projections.SetupError.
func OpenParked(ctx context.Context, client Client, stateTable string) (parked ParkedReader, userTable string, err error) {
	rd, found, err := begin(ctx, client, stateTable)
	if err != nil {
		return ParkedReader{}, "", err
	}
	return rd.ParkedReader, found.Table, nil
}
