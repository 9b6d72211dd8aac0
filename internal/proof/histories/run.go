package histories

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/projections/inspect"
	"github.com/dynamill/dynamill/internal/proof/adversary"
	"github.com/dynamill/dynamill/internal/proof/oracle"
	"github.com/dynamill/dynamill/internal/replay/verify"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/streamreader"
)

const (
	tableName      = "app"
	stateTableName = "app-dynamill"
	leaseTableName = "app-dynamill-leases"
)

// Outcome is what came of a history.
type Outcome struct {
	Problems []string // nothing if all promises were kept
	Steps    int
	Calls    int
	Records  int
	Repaired int             // differences that unread records left
	Drift    []verify.Result // that was found amid the history
	Counts   adversary.Counts
	Trace    []string // if asked for
}

// struckMax is how many calls a strike is waited for.
const struckMax = 5000

// noCall begins a problem: a strike was meant for a call that never came.
const noCall = "no call came for a strike"

// life is one history under way.
type life struct {
	*History
	crew       *adversary.Crew
	app        *application
	gap        bool // records were lost
	overflowed bool // DynamoDB refused to take an amount back, because no number holds what is left

	startsOver bool                // without the former state table, which knew the engine's mirror items
	restored   map[change.Key]bool // items of a backup: only a replay finds those whose sources the backup lacks

	// The stream is older than it holds records; and checkpoints were lost since, or a worker slept: what is to be read again
	// may go meanwhile.
	aged, fading bool

	opponents map[change.Key]opponent
	early     map[change.Key]string // versions of entries with due marks that stood when their rules went live
	exports   [][]change.Key
	single    bool       // what was done last is a deletion by itself: of what a former rule left
	known     registered // the registry as it was read last
	former    []*rules.Set
	chronicle *oracle.Chronicle
	outcome   *Outcome
}

// Run lives through a history. It must be called in a synctest bubble. With
// trace it writes down everything that happens.
func Run(h *History, trace bool) *Outcome {
	l := &life{History: h, outcome: &Outcome{Steps: len(h.Steps)}, opponents: map[change.Key]opponent{}, early: map[change.Key]string{}}
	l.former = l.loadFormer()
	l.chronicle = l.newChronicle()
	l.crew = adversary.NewCrew(h.Seed, dynamosim.Options{Shards: h.Shards, ScatterCollections: h.Scatter, Changed: l.changed}, h.Faults)
	l.crew.World = adversary.World{
		Table: tableName, StateTable: stateTableName, LeaseTable: leaseTableName, RuleFile: cmp.Or(h.FirstRules, h.Population.File),
		HealsMax: h.HealsMax, FanOutMax: h.FanOutMax, BatchMin: h.BatchMin, RangesMin: h.RangesMin, DisplayEvery: h.DisplayEvery,
		PageMax: h.PageMax, LeaseTerm: h.LeaseTerm, LeasesTaken: h.LeasesTaken, NoneStops: h.LeaseTerm == noneStops, Namesakes: h.Namesakes,
		Skews: h.Skews, LatePolls: h.LatePolls,
	}
	l.crew.Workers, l.crew.Company, l.crew.TurnsMax = h.Workers, h.company(), h.TurnsMax
	l.crew.Wrote, l.crew.Done = l.watch, l.goneLive
	l.crew.Strikes = slices.Clone(h.Strikes)
	if trace {
		l.crew.Log = l.log
	}
	l.app = &application{sim: l.crew.Sim, table: tableName, population: h.Population, base: map[change.Key]change.Item{},
		expired: map[change.Key]bool{}}
	if err := l.live(); err != nil {
		l.problem("%v", err)
	}
	l.judgeFound()
	l.outcome.Drift = adversary.Drift(l.crew.Found)
	for _, err := range l.crew.Strange() {
		l.problem("a worker ended for no reason: %v", err)
	}
	l.crew.KillAll()
	l.outcome.Calls, l.outcome.Records, l.outcome.Counts = l.crew.Calls, l.crew.Delivered, l.crew.Counts
	return l.outcome
}

// judgeFound says what was called drift while no record was lost: it can only
// have been lag. What is found after a loss may be there.
func (l *life) judgeFound() {
	if l.gap {
		return
	}
	l.judgeCounts("amid a history", l.crew.Counted)
	for _, r := range adversary.Drift(l.crew.Found) {
		if r.Finding.What != drift.Surplus || !l.restored[r.Finding.Item] {
			l.problem("called drift amid a history: %+v", r)
		}
	}
}

// loseUnless notes that records are about to be lost, unless all are applied.
func (l *life) loseUnless(applied bool) {
	if applied {
		return
	}
	l.judgeFound()
	l.gap = true
}

func (l *life) log(format string, args ...any) {
	l.outcome.Trace = append(l.outcome.Trace, fmt.Sprintf(format, args...))
}

func (l *life) problem(format string, args ...any) {
	l.outcome.Problems = append(l.outcome.Problems, fmt.Sprintf(format, args...))
}

func (l *life) live() error {
	if err := l.createTable(l.Old == 0); err != nil {
		return err
	}
	for i, s := range l.Steps {
		if i == l.Old && l.Old > 0 {
			if err := l.stream(true); err != nil {
				return err
			}
		}
		if i >= l.Old {
			if err := l.turns(s.Turns); err != nil {
				return err
			}
		}
		if err := l.step(s); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, s, err)
		}
	}
	if l.crew.World.StreamARN == "" {
		if err := l.stream(true); err != nil {
			return err
		}
	}
	return l.end()
}

func (l *life) turns(n int) error {
	switch n {
	case Rest:
		return l.crew.Rest()
	case Struck:
		left := len(l.crew.Unspent())
		for range struckMax {
			if l.crew.Turn(); len(l.crew.Unspent()) < left {
				break
			}
		}
		return nil // the end tells of a strike that did not happen
	}
	for range n {
		l.crew.Turn()
	}
	return nil
}

func (l *life) createTable(streaming bool) error {
	keys := l.Population.Set.Table
	in := &dynamodb.CreateTableInput{TableName: aws.String(tableName), BillingMode: ddb.BillingModePayPerRequest}
	for _, key := range []struct {
		name string
		kind change.Kind
		role ddb.KeyType
	}{{keys.PartitionKey, l.Population.PartitionKind, ddb.KeyTypeHash}, {keys.SortKey, l.Population.SortKind, ddb.KeyTypeRange}} {
		if key.name == "" {
			continue
		}
		in.KeySchema = append(in.KeySchema, ddb.KeySchemaElement{AttributeName: &key.name, KeyType: key.role})
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			ddb.AttributeDefinition{AttributeName: &key.name, AttributeType: ddb.ScalarAttributeType(key.kind.String())})
	}
	ctx := context.Background()
	if _, err := l.crew.Sim.CreateTable(ctx, in); err != nil {
		return err
	}
	_, err := l.crew.Sim.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(tableName),
		TimeToLiveSpecification: &ddb.TimeToLiveSpecification{AttributeName: aws.String(expiresAt), Enabled: aws.Bool(true)},
	})
	if err != nil || !streaming {
		return err
	}
	return l.stream(true)
}

// stream enables or disables the table's stream.
func (l *life) stream(on bool) error {
	spec := &ddb.StreamSpecification{StreamEnabled: aws.Bool(on)}
	if on {
		spec.StreamViewType = ddb.StreamViewTypeNewAndOldImages
	}
	out, err := l.crew.Sim.UpdateTable(context.Background(), &dynamodb.UpdateTableInput{TableName: aws.String(tableName),
		StreamSpecification: spec})
	if err == nil && on {
		l.crew.World.StreamARN = aws.ToString(out.TableDescription.LatestStreamArn)
	}
	return err
}

func (l *life) step(s Step) error {
	switch s.Kind {
	case Judge:
		return l.judge()
	case Export:
		return l.export()
	}
	if s.Kind != Befall {
		l.crew.Log("the application: %s", s)
		if s.Kind == Fight {
			return l.fight(s)
		}
		return l.app.do(s)
	}
	if l.Faults.Has(s.Fault) || l.Name != "" {
		l.crew.Log("it befalls: %s", s.Fault)
		return l.befall(s)
	}
	return nil
}

// end brings everything to rest and judges it.
func (l *life) end() error {
	clear(l.opponents)
	l.crew.World.RuleFile = l.Population.File
	if err := l.crew.Settle(); err != nil {
		return err
	}
	for _, s := range l.crew.Unspent() {
		l.problem("%s: %s at %q", noCall, s.Fault, s.Call)
	}
	if err := l.changeRules(); err != nil {
		return err
	}
	if err := l.drain(); err != nil {
		return err
	}
	if l.gap || l.startsOver {
		if err := l.makeGood(); err != nil {
			return fmt.Errorf("sweeping: %w", err)
		}
	}
	if err := l.conclude(); err != nil || !l.Again || len(l.outcome.Problems) > 0 {
		return err
	}
	if err := errors.Join(l.drop(leaseTableName), l.drain(), l.conclude()); err != nil {
		return fmt.Errorf("delivering everything again: %w", err)
	}
	for i := range l.outcome.Problems {
		l.outcome.Problems[i] += " (after everything was delivered again)"
	}
	return nil
}

// conclude does what is left to the operator, and judges.
func (l *life) conclude() error {
	if err := l.retryParked(); err != nil {
		return fmt.Errorf("retrying what is parked: %w", err)
	}
	if err := errors.Join(l.judge(), l.verify()); err != nil || !l.Changing || len(l.outcome.Problems) > 0 {
		return err
	}
	return l.judgeSwept()
}

// drain has the stream read to its end. Where records were lost it does what
// the error says: it forgets the checkpoints, and a sweep follows.
func (l *life) drain() error {
	err := l.crew.Drain()
	var trimmed *streamreader.TrimmedError
	if (l.gap || l.fading) && errors.As(err, &trimmed) {
		if !l.gap {
			l.loseUnless(false)
			l.crew.ExpectGaps()
		}
		err = errors.Join(l.drop(leaseTableName), l.crew.Drain())
	}
	if err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	return nil
}

// sweep rederives every item that is there or that the ledger knows, as a
// replay does after records were lost.
func (l *life) sweep() error {
	present, err := l.app.present()
	if err != nil {
		return err
	}
	state, err := items(l.crew.Sim, stateTableName)
	if err != nil {
		return err
	}
	var keys []change.Key
	for _, it := range present {
		keys = append(keys, l.Population.Key(it))
	}
	for _, row := range state {
		if key, ok := strings.CutPrefix(row["pk"].Text(), "i/"); ok {
			if whole := row["item"].Text(); whole != "" { // the key of the row is cut
				key = whole
			}
			keys = append(keys, change.ParseKey(key))
		}
	}
	slices.SortFunc(keys, func(a, b change.Key) int { return strings.Compare(a.String(), b.String()) })
	keys = slices.Compact(keys)
	err = l.crew.With(func(ctx context.Context, e *projections.Engine) error { return e.Rederive(ctx, keys) })
	return errors.Join(err, l.drain())
}

// retryParked does what docs/state-table.md tells the operator to do about
// what no record clears: contested attributes, refused writes, and all that is
// parked where records were lost and nothing was verified.
func (l *life) retryParked() error {
	if err := l.recountRefused(); err != nil {
		return err
	}
	again := false
	err := l.crew.With(func(ctx context.Context, e *projections.Engine) error {
		all, err := e.Parked(ctx)
		for _, p := range all {
			l.judgeParking(p)
			if (!l.gap || l.Verifies) && p.Code != "heal.contested" && p.Code != "write.rejected" && !l.isSumTooLarge(p) {
				continue
			}
			again = true
			// A retry brings the whole item up to date, and so clears what other rules parked of it.
			if failed := e.RetryParked(ctx, p.ID); !errors.Is(failed, inspect.ErrNotParked) {
				err = errors.Join(err, failed)
			}
		}
		return err
	})
	if err == nil && again {
		err = l.drain()
	}
	return err
}

// isSumTooLarge reports whether a display may be what is parked because no number holds it. An expression's result is its item's affair.
func (l *life) isSumTooLarge(p inspect.Parked) bool {
	return p.Code == "number.overflow" && !slices.ContainsFunc(l.Population.Set.Rules, func(r *rules.Rule) bool {
		return r.Name == p.Rule && !r.Displays()
	})
}

// recountRefused has rules counted anew that count by stream position, and of which DynamoDB refused to add to a sum.
func (l *life) recountRefused() error {
	folded := l.Population.Set.Folded()
	if len(folded) == 0 {
		return nil
	}
	var refused []string
	err := l.crew.With(func(ctx context.Context, e *projections.Engine) error {
		all, err := e.Parked(ctx)
		for _, p := range all {
			if p.Code == "number.overflow" && slices.Contains(folded, p.Rule) && !slices.Contains(refused, p.Rule) {
				refused = append(refused, p.Rule)
			}
		}
		if err != nil || len(refused) == 0 {
			return err
		}
		l.overflowed = true
		if err := e.Recount(ctx, refused); !errors.Is(err, projections.ErrEpochMoved) {
			return err
		}
		return nil
	})
	if err == nil && len(refused) > 0 {
		err = l.drain()
	}
	return err
}

// rows are the items of a table as a trace shows them.
func (l *life) rows(table string) []string {
	all, err := items(l.crew.Sim, table)
	if err != nil {
		return []string{err.Error()}
	}
	var lines []string
	for _, it := range all {
		lines = append(lines, told(it))
	}
	slices.Sort(lines)
	return lines
}
