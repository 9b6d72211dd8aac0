package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

const (
	stateTable = "app-dynamill"
	term       = 10 * time.Second
)

var errKilled = errors.New("killed")

var blogKeys = sources.KeyNames{Partition: "pk", Sort: "sk"}

// rig is what replays share: a state table, a table, and an engine that keeps the books.
type rig struct {
	t   *testing.T
	sim *dynamosim.Sim

	mu        sync.Mutex
	left      []string       // passes that rules need
	works     map[string]int // by pass and key: how often it was worked off
	begun     int            // calls of Work
	completed []string
	slow      time.Duration // that a page takes
}

func newRig(t *testing.T) *rig { return newRigOf(t, types.ScalarAttributeTypeS) }

// newRigOf makes a rig whose table has sort keys of this type.
func newRigOf(t *testing.T, sortType types.ScalarAttributeType) *rig {
	t.Helper()
	r := &rig{t: t, works: map[string]int{}, sim: dynamosim.New(dynamosim.Options{})}
	for name, sortType := range map[string]types.ScalarAttributeType{stateTable: types.ScalarAttributeTypeS, "app": sortType} {
		_, err := r.sim.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
			},
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String("sk"), AttributeType: sortType},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *rig) put(table string, keys ...change.Key) {
	r.t.Helper()
	for _, k := range keys {
		_, err := r.sim.PutItem(r.t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: k.Partition}, "sk": &types.AttributeValueMemberS{Value: k.Sort},
		}})
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// process is one process's view: what it calls fails once it is killed, or
// waits while it is frozen.
type process struct {
	*rig
	alive  context.Context
	kill   context.CancelFunc
	hook   func(call string) // before each Work, and before and after each write of progress
	frozen chan struct{}     // nil, or closed when the process wakes up
	lose   func() error      // of an answer to a write of progress, which has taken effect
}

func (r *rig) process() *process {
	p := &process{rig: r}
	p.alive, p.kill = context.WithCancel(context.Background())
	r.t.Cleanup(p.kill)
	return p
}

// at lets the hook see a call, and says whether the process still lives.
func (p *process) at(call string) error {
	if p.alive.Err() == nil && p.hook != nil {
		p.hook(call)
	}
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	if p.alive.Err() != nil {
		return errKilled
	}
	return nil
}

func (p *process) NextPass(context.Context) (string, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.left) == 0 {
		return "", 0, p.alive.Err()
	}
	return p.left[0], len(p.left), p.alive.Err()
}

func (p *process) TableOf(pass string) string {
	if strings.HasPrefix(pass, "sweep") {
		return stateTable
	}
	return "app"
}

func (p *process) RulesOf(string) []string { return []string{"some-rule"} }

func (p *process) Work(_ context.Context, pass string, keys []change.Key) error {
	if err := p.at("work"); err != nil {
		return err
	}
	p.mu.Lock()
	p.begun++
	slow := p.slow
	for _, k := range keys {
		p.works[pass+" "+k.String()]++
	}
	p.mu.Unlock()
	time.Sleep(slow)
	return p.at("worked")
}

func (p *process) Complete(_ context.Context, pass string) error {
	if p.alive.Err() != nil {
		return errKilled
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.completed = append(p.completed, pass)
	p.left = slices.DeleteFunc(p.left, func(l string) bool { return l == pass })
	return nil
}

func (p *process) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := p.at("get"); err != nil {
		return nil, err
	}
	return p.sim.GetItem(ctx, in)
}

func (p *process) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if err := p.at("query"); err != nil {
		return nil, err
	}
	return p.sim.Query(ctx, in)
}

func (p *process) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := p.at("put"); err != nil {
		return nil, err
	}
	out, err := p.sim.PutItem(ctx, in)
	if dead := p.at("has put"); dead != nil {
		return nil, dead
	}
	if p.lose != nil && err == nil {
		if lost := p.lose(); lost != nil {
			return nil, lost
		}
	}
	return out, err
}

// config is that of a replay of a source; nil: of the whole table.
func (p *process) config(source sources.Source) replay.Config {
	return replay.Config{
		Engine: p, State: p, StateTable: stateTable, Source: source, Term: term, Worker: "w",
		Scan: sources.ScanConfig{Client: p.sim, Keys: blogKeys, Segments: 4},
	}
}

// book is a source of pieces with some pages each, and a key on every page.
type book struct {
	name          string
	pieces, pages int
	mu            sync.Mutex
	torn          map[string]error // of pieces that cannot be read
	reads         map[string]int
}

func newBook(pieces, pages int) *book {
	return &book{name: fmt.Sprintf("book of %d pieces", pieces), pieces: pieces, pages: pages, torn: map[string]error{},
		reads: map[string]int{}}
}

func (b *book) Describe() string { return b.name }

func (b *book) Pieces(context.Context) ([]sources.Piece, error) {
	found := make([]sources.Piece, b.pieces)
	for i := range found {
		found[i].Name = fmt.Sprintf("part-%d", i)
	}
	return found, nil
}

func (b *book) Read(ctx context.Context, piece sources.Piece, cursor string) (sources.Page, error) {
	if err := ctx.Err(); err != nil {
		return sources.Page{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.torn[piece.Name]; err != nil {
		return sources.Page{}, err
	}
	b.reads[piece.Name]++
	n, _ := strconv.Atoi(cursor)
	return sources.Page{
		Keys: []change.Key{{Partition: piece.Name, Sort: strconv.Itoa(n)}}, Items: 1, ReadUnits: 0.5,
		Next: strconv.Itoa(n + 1), Last: n+1 == b.pages,
	}, nil
}

// times says how often the pages of a pass were worked off: by how often, how many.
func (r *rig) times(pass string) map[int]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[int]int{}
	for key, n := range r.works {
		if strings.HasPrefix(key, pass+" ") {
			found[n]++
		}
	}
	return found
}

// rows returns the progress rows whose sort key begins with a prefix.
func (r *rig) rows(prefix string) []map[string]types.AttributeValue {
	r.t.Helper()
	out, err := r.sim.Scan(r.t.Context(), &dynamodb.ScanInput{TableName: aws.String(stateTable)})
	if err != nil {
		r.t.Fatal(err)
	}
	return slices.DeleteFunc(out.Items, func(row map[string]types.AttributeValue) bool {
		return !strings.HasPrefix(row["sk"].(*types.AttributeValueMemberS).Value, prefix)
	})
}

func (r *rig) text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func (r *rig) overwrite(row map[string]types.AttributeValue) {
	r.t.Helper()
	if _, err := r.sim.PutItem(r.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(stateTable), Item: row}); err != nil {
		r.t.Fatal(err)
	}
}

func keyOf(i int) change.Key { return change.Key{Partition: fmt.Sprint("p", i), Sort: "a"} }
