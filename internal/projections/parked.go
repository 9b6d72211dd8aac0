package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/projections/internal/audit"
	"github.com/dynamill/dynamill/internal/projections/internal/host"
	"github.com/dynamill/dynamill/internal/projections/internal/state"
	"github.com/dynamill/dynamill/internal/projections/internal/table"
)

// ErrNotParked is returned for an id under which nothing is parked.
var ErrNotParked = errors.New("nothing is parked under this id")

// Parked is an (item, rule) that is set aside because it can never succeed as it is.
type Parked struct {
	state.Parked // its Raw, what came or its beginning, is from FindParked only

	Rule string // the rule's name, "unique <Entity>" for a locator, or "record" for one that could not be read
	Key  change.Key
	// Claimants are the items that claim a contested target, the winner first. Key is the mirror item, or of a unique value the winner.
	Claimants []change.Key

	contested *audit.ContestedTarget // nil for every other entry
}

// recordID begins the id of a parked record that could not be read.
const recordID = "record/"

// rawBytesMax is how much of such a record is kept: an item holds 400 KB (DynamoDB developer guide, "Constraints").
const rawBytesMax = 300 << 10

// ParkRecord sets aside a record that a driver could not read. A retry cannot help; the item's next record, or rederiving it, does.
func (e *Engine) ParkRecord(ctx context.Context, id, code, reason string, raw []byte) error {
	text := strings.ToValidUTF8(string(raw[:min(len(raw), rawBytesMax)]), "\ufffd") // which may be three times as long
	record := state.Parked{
		ID: recordID + id, Code: code, Reason: reason, At: e.host.Now(), Parking: state.NewID(),
		Raw: strings.ToValidUTF8(text[:min(len(text), rawBytesMax)], ""),
	}
	_, err := e.tables.PutState(ctx, "", "parking record "+id, record.Row(), "", table.NewExpression())
	if err == nil {
		e.host.Counters.Parked.Add(1)
		e.host.Logger.WarnContext(ctx, "parked a record that cannot be read", "record", id, "code", code, "reason", reason)
	}
	return err
}

// RetryParked rederives the item. What was parked goes if the item is good now; otherwise it stays with its new reason. Records
// that could not be read stay, as do contested targets and those with too many values. It returns ErrNotParked for an unknown id.
func (e *Engine) RetryParked(ctx context.Context, id string) error {
	p, err := e.FindParked(ctx, id)
	if err != nil {
		return err
	}
	if p.contested != nil {
		return e.host.UnlistIfUncontested(ctx, *p.contested)
	}
	if p.Key == (change.Key{}) {
		return nil // a record that cannot be read stays so
	}
	if err := e.Rederive(ctx, []change.Key{p.Key}); err != nil {
		return err
	}
	if p.Code == audit.PerTooMany {
		return nil // the roll-up clears it, if there are few values
	}
	return e.host.Unpark(ctx, id, p.Parking)
}

// DiscardParked forgets what is parked under an id: the item has no effect under the rule until it changes. It returns
// ErrNotParked for an unknown id.
func (e *Engine) DiscardParked(ctx context.Context, id string) error {
	if _, err := e.FindParked(ctx, id); err != nil {
		return err
	}
	return e.host.Unpark(ctx, id, "")
}

// A record that could not be read may have 300 KB. So lists are read page by page and without it.

// parkedAttributes are those of a parked record in a list: all but raw.
var parkedAttributes = []string{"id", "rule", "item", "code", "reason", "parking", "parkedAt", "position", "value"}

// EachParked calls f with every page of what is parked, sorted by id, without Raw. What f changes may or may not follow.
func (rd *ruleReader) EachParked(ctx context.Context, f func(page []Parked) error) error {
	return rd.reader.QueryPages(ctx, listingParked, rd.parkedQuery(table.NewExpression(), parkedAttributes...), func(rows []table.Row) error {
		page, err := rd.readAllParked(ctx, rows)
		if err != nil {
			return err
		}
		return f(slices.DeleteFunc(page, Parked.outlived))
	})
}

// Parked lists what is parked, sorted by id, without Raw. EachParked needs less memory.
func (e *Engine) Parked(ctx context.Context) ([]Parked, error) {
	var all []Parked
	err := e.EachParked(ctx, func(page []Parked) error {
		all = append(all, page...)
		return nil
	})
	return all, err
}

// ParkedBehind lists at most limit parked records behind an id ("": all), sorted by id, without Raw. more: others may follow.
func (e *Engine) ParkedBehind(ctx context.Context, id string, limit int) (page []Parked, more bool, err error) {
	c := table.NewExpression()
	in := e.parkedQuery(c, parkedAttributes...)
	if id != "" {
		in.KeyConditionExpression = new(*in.KeyConditionExpression + c.Format(" AND %n > %v", table.SK, table.Text(state.ParkedKey(id).Sort)))
	}
	in.Limit = new(int32(limit)) //nolint:gosec // of a page
	out, err := e.tables.Query(ctx, listingParked, in)
	if err != nil {
		return nil, false, err
	}
	page, err = e.readAllParked(ctx, out.Items)
	return page, len(out.LastEvaluatedKey) > 0, err
}

// CountParked counts what is parked.
func (e *Engine) CountParked(ctx context.Context) (total int, err error) {
	codes, err := e.inspectParked(ctx)
	for _, n := range codes {
		total += n
	}
	return total, err
}

// FindParked reads what is parked under an id, whole. It returns ErrNotParked for an unknown id.
func (rd *ruleReader) FindParked(ctx context.Context, id string) (Parked, error) {
	key := state.ParkedKey(id)
	rows, err := rd.reader.ReadState(ctx, "reading what is parked", []table.Key{key})
	if err != nil {
		return Parked{}, err
	}
	if rows[key] == nil {
		return Parked{}, fmt.Errorf("%s: %w", id, ErrNotParked)
	}
	page, err := rd.readAllParked(ctx, []table.Row{rows[key]})
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
func (rd *ruleReader) parkedQuery(c *table.Expression, attributes ...string) *dynamodb.QueryInput {
	in := rd.reader.StateQuery(c.Format("%n = %v", table.PK, table.Text(state.ParkedPartition)), c)
	in.ProjectionExpression = new(c.List(attributes))
	return in
}

// outlived reports whether the target of a row is no longer contested: a worker is about to delete the row.
func (p Parked) outlived() bool { return p.contested != nil && len(p.Claimants) < 2 }

func (rd *ruleReader) readParked(item table.Row) Parked {
	row := state.ReadParked(item)
	p := Parked{Parked: row, Rule: "record", Key: row.Item}
	if t, ok := audit.ReadContested(attributes.ItemFromTable(item)); ok {
		p.contested, p.Value, p.Key = &t, t.Value, t.Target
	}
	if row.Rule != "" { // a record that could not be read has none
		p.Rule = rd.ruleName(row.Rule)
	}
	return p
}

// claimantSetsMax is how many sets of claimants are read at once: one may have 400 KB.
const claimantSetsMax = 100

// readAllParked reads parked records, and the items that claim the contested targets among them.
func (rd *ruleReader) readAllParked(ctx context.Context, rows []table.Row) ([]Parked, error) {
	page := make([]Parked, len(rows))
	for i, item := range rows {
		page[i] = rd.readParked(item)
	}
	for part := range slices.Chunk(page, claimantSetsMax) {
		var keys []table.Key
		for _, p := range part {
			if p.contested != nil {
				keys = append(keys, state.SetKey(*p.contested))
			}
		}
		sets, err := rd.reader.ReadState(ctx, "reading the claimants of contested targets", keys)
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

// ParkedInspection reads what is parked. It needs no rules and writes nothing.
type ParkedInspection struct {
	*ruleReader
	Table string // the user's, that the state table belongs to
}

// InspectParked begins to read what is parked. Where nothing has run yet it returns Inspect's *SetupError.
func InspectParked(ctx context.Context, client table.InspectClient, stateTable string) (*ParkedInspection, error) {
	rd, found, err := beginInspection(ctx, client, stateTable)
	if err != nil {
		return nil, err
	}
	return &ParkedInspection{rd, found.Table}, nil
}
