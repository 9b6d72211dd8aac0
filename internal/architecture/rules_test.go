package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// module is this module's path. Its packages are written as folders, "./change".
const module = "github.com/dynamill/dynamill"

// rootPackage is the package at the module's root; "." alone is every package.
const rootPackage = "./."

// arrow forbids one direction of knowledge: nothing in from may reach anything
// in to, directly or through other packages of the module. Rooms contain
// their subfolders.
type arrow struct {
	from    []string // rooms; "." is every room
	to      []string // rooms, or other modules
	except  []string // rooms inside from that are free
	allowed []string // rooms inside to that are free
	why     string
}

const (
	awsSDK = "github.com/aws/aws-sdk-go-v2"
	smithy = "github.com/aws/smithy-go"
)

// library lists the rooms that users import, and those that these and the commands are built on.
var library = []string{
	rootPackage, "./change", "./rules", "./projections", "./streamreader",
	"./internal/rules", "./internal/projections", "./internal/streamreader", "./internal/handlers", "./internal/replay", "./internal/infra",
}

// families lists the families of kinds of rules.
var families = []string{"./internal/projections/internal/kinds/copies", "./internal/projections/internal/kinds/mirrors",
	"./internal/projections/internal/kinds/aggregates", "./internal/projections/internal/kinds/ordered",
	"./internal/projections/internal/kinds/computed", "./internal/projections/internal/kinds/deletions",
	"./internal/projections/internal/kinds/trees", "./internal/projections/internal/kinds/hot"}

// engine lists the rooms that keep the promises.
var engine = []string{"./internal/projections", "./internal/streamreader", "./internal/stream", "./internal/handlers", "./internal/replay"}

// verification lists the rooms that only tests need.
var verification = []string{"./internal/proof", "./internal/sim"}

// command is where the rooms of the command dynamill are.
const command = "./cmd/dynamill/internal/"

// commandLevels are the rooms of the command from the bottom up. A room may import those below its level only.
var commandLevels = [][]string{
	{command + "demo", command + "ending", command + "progress"},
	{command + "commandline", command + "output", command + "settings"},
	{command + "environment", command + "report", command + "template"},
	{command + "followed", command + "session"},
	{command + "explain", command + "follow", command + "parked", command + "preview", command + "status", command + "verifying"},
	{command + "replaying"},
}

// levelled has an arrow for each level, which forbids its own other rooms and the levels above.
func levelled(levels [][]string, why string) (arrows []arrow) {
	for i, rooms := range levels {
		arrows = append(arrows, arrow{from: rooms, to: slices.Concat(levels[i:]...), why: why})
	}
	return arrows
}

// arrows are the layout's rules for code that is not a test.
var arrows = slices.Concat(levelled(commandLevels,
	"a room of the command uses what is below it, so that a test can call each without a process"), []arrow{
	{
		from: []string{"./change"}, to: []string{"."},
		why: "change holds the words that every room shares; it must be usable without any of them",
	},
	{
		from: []string{"./projections", "./streamreader"}, to: []string{"."}, allowed: []string{"./change"},
		why: "these two say in types what the engine and the reader tell a program; both import them",
	},
	{
		from: []string{"."}, except: []string{rootPackage, "./cmd", "./scripts"}, to: []string{"./rules"},
		why: "the rooms take compiled rules; rules loads a file for users' programs",
	},
	{
		from: []string{"./internal/rules"}, to: []string{awsSDK, smithy, "github.com/aws/aws-lambda-go"},
		why: "rules are pure: a rule file is checked and evaluated without an AWS client",
	},
	{
		from: []string{"./internal/rules"}, to: []string{"."},
		allowed: []string{"./internal/rules", "./change", "./internal/decimal", "./internal/printable", "./internal/tally"},
		why:     "rules say what is derived; what derives it reads them, never the other way round",
	},
	{
		from:   []string{rootPackage, "./internal", "./cmd/dynamill-lambda", "./cmd/dynamill/internal"},
		except: []string{command + "preview", command + "replaying"}, // replaying shows what preview says of a plan
		to:     []string{"./internal/rules/rulediff"},
		why:    "a person reads in what rules differ before they change; a worker does not",
	},
	{
		from: []string{"./internal/rules/expr/internal/scanner"}, to: []string{"."}, allowed: []string{"./internal/printable"},
		why: "tokens are found in a text, whatever they mean",
	},
	{
		from: []string{"./internal/rules/expr/internal/operand"}, to: []string{"./internal/rules"},
		why: "values are computed with, whatever the syntax is",
	},
	{
		from: families, to: []string{"./internal/projections/internal/kinds"},
		allowed: []string{"./internal/projections/internal/kinds/amounts"}, // what two families share, and no family
		why:     "a family of kinds is known by the list alone: neither another family nor the list is needed to understand it",
	},
	{
		from: []string{"./internal/projections/internal"}, except: []string{"./internal/projections/internal/kinds"},
		to:  []string{"./internal/projections/internal/kinds"},
		why: "the families of kinds use what all kinds share; that asks a rule for its roles",
	},
	{
		from:   []string{"./internal/projections/internal"},
		except: []string{"./internal/projections/internal/kinds", "./internal/projections/internal/childaudit"},
		to:     []string{"./internal/projections/internal/children", "./internal/projections/internal/childaudit"},
		why:    "parents are followed to their children, and audited with them, for the families of kinds alone",
	},
	{
		from: []string{"./internal/projections/internal/stamp"}, to: []string{"./internal/rules", "./internal/projections/internal"},
		why: "texts are spelled without knowing rules, rows or tables",
	},
	{
		from: []string{"./internal/projections/internal/effects"}, to: []string{"./internal/projections/internal", awsSDK, smithy},
		allowed: []string{"./internal/projections/internal/stamp"},
		why:     "an effect is a value; what plans it, writes it and remembers it knows it, never the other way round",
	},
	{
		from: []string{"./internal/projections/internal/plan", "./internal/projections/internal/pack", "./internal/projections/internal/stamp",
			"./internal/projections/internal/leftovers"},
		to:  []string{awsSDK, smithy},
		why: "what records ask for is worked out without any I/O; the package around it sends the requests",
	},
	{
		from: []string{"./internal/projections/internal/table"}, to: []string{"./internal/projections", "./internal/rules"},
		why: "requests know keys and attributes; which rows there are, and which rules they serve, is for the rooms above",
	},
	{
		from: []string{"./internal/projections/internal/state"},
		to: []string{"./internal/projections/internal/target", "./internal/projections/internal/sightings",
			"./internal/projections/internal/registry"},
		why: "rows are keys and encodings; the rooms above read and write them",
	},
	{
		from: []string{"./internal/projections/internal/target"},
		to: []string{"./internal/projections/internal/state", "./internal/projections/internal/sightings",
			"./internal/projections/internal/registry"},
		why: "a target is written in one way, whatever the state table says of it",
	},
	{
		from: []string{"./internal/projections/internal/sightings"},
		to:   []string{"./internal/projections/internal/target", "./internal/projections/internal/registry"},
		why:  "what was seen is told, whatever is written",
	},
	{
		from: []string{"./internal/projections/internal/registry"},
		to:   []string{"./internal/projections/internal/target", "./internal/projections/internal/sightings"},
		why:  "which rules are in force does not hang on what they write",
	},
	{
		from: []string{"./internal/projections/internal/table", "./internal/projections/internal/state", "./internal/projections/internal/target",
			"./internal/projections/internal/sightings", "./internal/projections/internal/registry"},
		to:  []string{"./internal/projections/internal/host"},
		why: "the host of the kinds stands on the rooms that send requests",
	},
	{
		from: []string{"./internal/projections/internal"}, to: []string{"./internal/projections/internal/seeding",
			"./internal/projections/internal/sweep"},
		why: "which pass comes next, and what a sweep finds, is asked by the package that works off its items alone",
	},
	{
		from: []string{"./internal/projections/internal/seeding"},
		to: []string{"./internal/projections/internal/host", "./internal/projections/internal/target",
			"./internal/projections/internal/sightings"},
		why: "which pass comes next does not hang on what a pass writes",
	},
	{
		from: []string{"./internal/projections/internal"}, to: []string{"./internal/projections/internal/ledger"},
		why: "the ledger stands on the host, which offers it to the kinds by an interface",
	},
	{
		from: []string{"./internal/projections/internal/auditing", "./internal/projections/internal/explaining"},
		to: []string{"./internal/projections/internal/host", "./internal/projections/internal/target",
			"./internal/projections/internal/sightings"},
		why: "an audit reads, and mends what it read; an explanation only reads; what derives anew is the engine's",
	},
	{
		from: []string{
			"./internal/projections/internal/table", "./internal/projections/internal/state", "./internal/projections/internal/target",
			"./internal/projections/internal/sightings",
			"./internal/projections/internal/registry",
			"./internal/projections/internal/host",
		},
		to:  []string{"./internal/projections/internal/auditing", "./internal/projections/internal/explaining"},
		why: "an audit or an explanation looks at what the other rooms do, and none of them needs it",
	},
	{
		from: []string{"./internal/projections/internal/plan", "./internal/projections/internal/pack", "./internal/projections/internal/audit",
			"./internal/projections/internal/leftovers"},
		to: []string{
			"./internal/projections/internal/table", "./internal/projections/internal/state", "./internal/projections/internal/target",
			"./internal/projections/internal/sightings",
			"./internal/projections/internal/registry",
			"./internal/projections/internal/host", "./internal/projections/internal/auditing", "./internal/projections/internal/explaining",
		},
		why: "the pure halves work without the rooms that send requests",
	},
	{
		from: []string{"./internal/projections"},
		to:   []string{"./internal/streamreader", "./internal/stream", "./internal/handlers", "./internal/replay", "./internal/infra"},
		why:  "the engine serves every driver alike and knows none of them",
	},
	{
		from: []string{"./internal/streamreader", "./internal/stream"},
		to:   []string{"./internal/projections", "./internal/handlers", "./internal/replay", "./internal/infra"},
		why:  "a driver feeds the Processor that it declares; the package at the root wires an engine to it",
	},
	{
		from: []string{"./internal/handlers"},
		to:   []string{"./internal/projections", "./internal/streamreader", "./internal/stream", "./internal/replay", "./internal/infra"},
		why:  "a driver feeds the Processor that it declares; the package at the root wires an engine to it",
	},
	{
		from: []string{"./internal/replay"},
		to:   []string{"./internal/projections", "./internal/streamreader", "./internal/stream", "./internal/handlers", "./internal/infra"},
		// verify/pending reads the stream with the same calls as the reader, and holds no lease.
		allowed: []string{"./internal/stream/streamapi", "./internal/stream/shardlist", "./internal/stream/leases"},
		why:     "a driver feeds the Processor that it declares; the package at the root wires an engine to it",
	},
	{
		from: []string{"./internal/replay/sources"}, to: []string{"./internal/replay", "./internal/rules"},
		allowed: []string{
			"./internal/replay/archive", "./internal/replay/objects", "./internal/replay/internal/export", "./internal/replay/internal/lines",
		},
		why: "a source gives keys; the run that works them off, and the rules that it serves, are for the room above",
	},
	{
		from: []string{"./internal/infra"}, to: append([]string{"./internal/attributes", awsSDK, smithy}, engine...),
		why: "templates follow from the rule file alone; who deploys them calls AWS",
	},
	{
		from: []string{rootPackage},
		to: []string{
			"./internal/replay/verify", "./internal/infra", "./examples", "./internal/monitor", "./internal/health",
			"github.com/prometheus", awsSDK + "/config", awsSDK + "/service/lambda", awsSDK + "/service/ssm", "github.com/spf13", "github.com/agext",
		},
		why: "a program that follows a table links what follows it, and nothing that only the commands need",
	},
	{
		from: []string{"."}, except: []string{rootPackage, "./cmd", "./examples"}, to: []string{rootPackage},
		why: "the library's door opens on the rooms; a room that needs something from it declares an interface",
	},
	{
		from: []string{"./dynamilltest"}, to: append([]string{"./rules", "./internal/rules", "./internal/infra", "./internal/monitor"},
			engine...),
		why: "the DynamoDB for users' tests knows nothing of what follows it",
	},
	{
		from: []string{"."}, except: []string{"./dynamilltest"}, to: []string{"./dynamilltest"},
		why: "what is for tests is never built into anything else",
	},
	{
		from: []string{"./internal/pace", "./internal/object", "./internal/replayerror"}, to: []string{"."},
		why: "each does one thing and knows no other room",
	},
	{
		from: []string{"./cmd/dynamill-lambda"},
		to: []string{
			"./internal/replay/verify", "./internal/infra", "./examples", "./internal/sim/dynamosim", "./internal/sim/workbench",
			"./internal/proof/oracle",
			"./internal/monitor", "./internal/health", "github.com/prometheus", awsSDK + "/service/lambda", "github.com/spf13",
			"github.com/cpuguy83", "github.com/agext",
		},
		why: "the function has ten seconds to start; what it holds beside engine, handler and the drivers' part of a replay makes it larger " +
			"and slower",
	},
	{
		from: []string{"./internal/emf"}, to: []string{"."}, allowed: []string{"./projections", "./change"},
		why: "a line of metrics says what was counted, whatever counts it",
	},
	{
		from: []string{"./internal/awserror"}, to: []string{"."},
		why: "an error of AWS is explained by its type and code, whatever the command was doing",
	},
	{
		from: []string{"./cmd/dynamill/internal/progress"}, to: append([]string{awsSDK, smithy}, library...),
		why: "progress is shown in one way for every command; each command says how far it is",
	},
	{
		from: []string{"./internal/health"}, to: []string{".", awsSDK, smithy},
		why: "how a table is followed is decided from facts; the caller reads the tables and the stream",
	},
	{
		from: library, to: []string{"./internal/sim/dynamosim", "./internal/sim/workbench", "./internal/proof/oracle"},
		why: "the simulator is for tests and demonstrations and never offered for production",
	},
	{
		from: []string{"./internal/proof/mutants"}, to: []string{"."},
		why: "a build with the overlay puts the switches into every room; they must be usable by the innermost",
	},
	{
		from: []string{"./internal/awscall"}, to: []string{"."},
		why: "every room asks what an error of AWS asks for; it must be usable by the innermost",
	},
	{
		from: []string{"./internal/proof/oracle"}, to: append([]string{awsSDK, smithy}, engine...),
		why: "who judges the engine shares no code with it, or both are wrong together",
	},
	{
		from: []string{"./internal/proof/population"}, to: append([]string{"./internal/proof/oracle"}, engine...),
		why: "what an application writes follows from the rule file alone, not from what is made of it",
	},
	{
		from: []string{"./internal/proof/adversary"}, to: []string{"./internal/proof/oracle", "./internal/proof/population"},
		why: "who troubles workers does not know what they should come to; proof brings the two together",
	},
	{
		from: []string{"."}, except: verification, to: verification,
		allowed: []string{"./internal/sim/dynamosim", "./internal/sim/workbench", "./internal/proof/oracle"}, // `demo` shows what they do
		why:     "what checks the promises, the templates and the kinds is for tests and never built into anything else",
	},
	{
		from: []string{"."}, except: []string{"./cmd"}, to: []string{"./cmd"},
		why: "cmd holds flags, texts and displays; what a room needs from it belongs into a room",
	},
})

// imports maps each package of the module to what its files import.
type imports map[string][]string

// breaches returns one sentence for every package that breaks an arrow, with
// the shortest way along which it does, in the order of arrows and packages.
func breaches(graph imports, arrows []arrow) []string {
	packages := make([]string, 0, len(graph))
	for pkg := range graph {
		packages = append(packages, pkg)
	}
	slices.Sort(packages)
	var found []string
	for _, a := range arrows {
		for _, pkg := range packages {
			if !inAny(pkg, a.from) || inAny(pkg, a.except) {
				continue
			}
			if way := shortestWay(graph, pkg, a.to, a.allowed); way != nil {
				found = append(found, fmt.Sprintf("%s must not import %s: %s (%s)",
					room(pkg), way[len(way)-1], a.why, strings.Join(way, " -> ")))
			}
		}
	}
	return found
}

// shortestWay returns the packages from start to the first one in a forbidden
// room, or nil. A room's own subfolders are not forbidden to it.
func shortestWay(graph imports, start string, forbidden, allowed []string) []string {
	allowed = append(slices.Clone(allowed), room(start))
	seen := map[string]bool{start: true}
	queue := [][]string{{start}}
	for len(queue) > 0 {
		way := queue[0]
		queue = queue[1:]
		for _, next := range graph[way[len(way)-1]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			longer := append(slices.Clone(way), next)
			if inAny(next, forbidden) && !inAny(next, allowed) {
				return longer
			}
			queue = append(queue, longer)
		}
	}
	return nil
}

// inAny reports whether pkg is one of the rooms or inside one. "." holds every
// package of the module and no other.
func inAny(pkg string, rooms []string) bool {
	return slices.ContainsFunc(rooms, func(room string) bool {
		return pkg == room || strings.HasPrefix(pkg, room+"/")
	})
}

// local writes an import path of the module as a folder and leaves others alone.
func local(importPath string) string {
	if importPath == module {
		return rootPackage
	}
	if rest, ok := strings.CutPrefix(importPath, module+"/"); ok {
		return "./" + rest
	}
	return importPath
}

// room is the part of a package's folder that the layout names: "./cmd",
// "./cmd/dynamill/internal/output", "./internal/sim/dynamosim", "./internal/replay/sources".
func room(pkg string) string {
	parts := strings.Split(pkg, "/")
	depth := 2
	for at := 1; at < len(parts)-1; at++ {
		if parts[at] != "internal" {
			continue
		}
		depth = at + 2
		if slices.Contains([]string{"sim", "proof", "kinds", "replay"}, parts[at+1]) {
			depth++
		}
	}
	return strings.Join(parts[:min(depth, len(parts))], "/")
}
