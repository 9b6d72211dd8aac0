package replay

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/internal/progress"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/rules"
)

// Engine is what a replay feeds. A pass is one way over all items of a table, as an opaque text that survives a restart.
type Engine interface {
	// NextPass returns the pass to work off next to bring the rules into force, and how many are left with it; 0 if none is.
	NextPass(ctx context.Context) (pass string, left int, err error)
	// TableOf names the table whose items the pass goes over: the user's or the state table.
	TableOf(pass string) string
	// RulesOf names the rules that the pass is for.
	RulesOf(pass string) []string
	// Work works off some items of a pass, given by key only. It is idempotent.
	Work(ctx context.Context, pass string, keys []change.Key) error
	// Complete ends a pass: every item that was in the table when it began was given to Work. It is idempotent.
	Complete(ctx context.Context, pass string) error
}

// The passes that are always possible: over all items, and over the ledger entries of items that have vanished.
const (
	passRederive = "rederive"
	passSweep    = "sweep"
)

// stateKeys names the key attributes of the state table.
var stateKeys = sources.KeyNames{Partition: "pk", Sort: "sk"}

const (
	parallelDefault = 4
	// termDefault is long beside a slow write and short for a waiting person.
	termDefault = 10 * time.Second
	// idleMax is how long after its last progress an unfinished replay is still resumed. Items that it found right may
	// have been damaged since.
	idleMax      = 24 * time.Hour
	uniqueLength = 10 // of base 32: 50 bits
	versionBytes = 6
)

// StateClient is what a replay keeps its progress with; *dynamodb.Client satisfies it.
type StateClient = progress.Client

// Config says what to replay.
type Config struct {
	Engine     Engine
	State      StateClient
	StateTable string
	// Scan says how to scan, and names the user's table's keys; its Table is not used. With Segments 0 a resumed scan
	// keeps its number. It is needed with a Source, too: the table says which of its keys are numbers.
	Scan sources.ScanConfig
	// Source gives the items; nil: a scan of the whole table, which alone can bring rules into force and find vanished items.
	Source sources.Source
	// Rules limits the replay to the items of some rules, by name; nil: all.
	Rules []string
	// Version identifies the rules (VersionOf). A replay begun under another Version is not resumed.
	Version  string
	Parallel int            // pieces at a time; default 4
	Worker   string         // begins this process's name among those that share the work; default: the host's
	Term     time.Duration  // a piece whose owner is not heard of for so long goes to others; default 10 s, the same in all
	Restart  bool           // forget what an unfinished replay has done
	Unique   func() string  // draws a name that is not taken; default: at random
	Report   func(Progress) // called after every page, by one goroutine at a time; may be nil
	// Opened is called with an unfinished replay that resumes, or that begins anew after a day without progress; may be nil.
	Opened func(Opened)
}

// Opened is a replay that was found unfinished.
type Opened struct {
	Begun              time.Time
	GivenUpAt          time.Time // of one that is begun anew, the last progress before; else zero
	Number, Of         int       // of the pass, from 1, and how many belong together
	Pieces, PiecesDone int       // of the pass
}

// whole reports whether the replay goes over all there is.
func (c Config) whole() bool { return c.Source == nil && len(c.Rules) == 0 }

// Progress is how far a replay is.
type Progress struct {
	Pass               string
	Rules              []string // that the pass is for
	Number, Of         int      // of the pass, from 1, and how many there are as far as known
	Pieces, PiecesDone int
	PassItems          int64 // worked off in this pass, also before a restart and by others, as far as known
	Totals
}

// Totals are what this process has done.
type Totals struct {
	Passes    int     `json:"passes"`
	Items     int64   `json:"items"`     // worked off
	Skipped   int64   `json:"skipped"`   // lines that a killed process left torn, parked records that have no key
	ReadUnits float64 `json:"readUnits"` // of scans
}

// driver works off what a Config asks for.
type driver struct {
	Config
	store  *progress.Store
	owner  string
	opened bool // the first run

	mu       sync.Mutex // held while Report runs
	reported Progress
}

func newDriver(cfg Config) (*driver, error) {
	if cfg.Engine == nil || cfg.State == nil || cfg.StateTable == "" || cfg.Scan.Client == nil {
		return nil, errors.New("a replay needs an Engine, a State client, a StateTable and a client for scans")
	}
	cfg.Parallel = cmp.Or(max(cfg.Parallel, 0), parallelDefault)
	cfg.Term = cmp.Or(max(cfg.Term, 0), termDefault)
	if cfg.Worker == "" {
		cfg.Worker, _ = os.Hostname()
	}
	cfg.Rules = slices.Compact(slices.Sorted(slices.Values(cfg.Rules)))
	if cfg.Unique == nil {
		cfg.Unique = func() string { return rand.Text()[:uniqueLength] }
	}
	return &driver{
		Config: cfg, store: progress.NewStore(cfg.State, cfg.StateTable, cfg.Unique), owner: strings.TrimPrefix(cfg.Worker+"-"+cfg.Unique(), "-"),
	}, nil
}

// rederive is the pass over the items of the rules asked for.
func (d *driver) rederive() string {
	if len(d.Rules) == 0 {
		return passRederive
	}
	return passRederive + "/" + strings.Join(d.Rules, ",")
}

// scanOf says how to scan the table of a pass.
func (d *driver) scanOf(pass string) sources.ScanConfig {
	cfg := d.Scan
	if cfg.Table = d.Engine.TableOf(pass); cfg.Table == d.StateTable {
		cfg.Keys = stateKeys
	}
	return cfg
}

// sourceOf returns the source of a pass, and its number of segments if it is a scan.
func (d *driver) sourceOf(ctx context.Context, pass string, segments int) (sources.Source, int, error) {
	cfg := d.scanOf(pass)
	if d.Source != nil && pass == d.rederive() {
		source, err := sources.Normalize(ctx, d.Source, cfg)
		return source, 0, err
	}
	if segments > 0 {
		cfg.Segments = segments
	}
	scan, err := sources.NewScan(ctx, cfg)
	if err != nil {
		return nil, 0, err
	}
	return scan, scan.Segments(), nil
}

// identityOf names the source of a pass for the run's id. It leaves out a number of segments that the table's size
// decides, so that a restart finds its run.
func (d *driver) identityOf(pass string) string {
	if d.Source != nil && pass == d.rederive() {
		return d.Source.Describe()
	}
	return d.scanOf(pass).Describe()
}

// VersionOf digests what rules mean and what they are called, for Config.Version.
func VersionOf(set *rules.Set) string {
	h := sha256.New()
	for _, rule := range set.Rules {
		fmt.Fprintf(h, "%q %q\n", rule.Name, rule.Fingerprint)
	}
	return hex.EncodeToString(h.Sum(nil)[:versionBytes])
}
