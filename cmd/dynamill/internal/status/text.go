package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/internal/printable"
)

// line is the first line: how the table is followed.
func (s *Report) line() string { return s.Table + ": " + s.followed.Line() }

// Text is the status for people: the first line, the summary, and the sections.
func (s *Report) Text() string {
	var b strings.Builder
	fmt.Fprintln(&b, printable.Text(s.line()))
	if !s.registered {
		return b.String()
	}
	fmt.Fprintf(&b, "%s (state table %s, incarnation %s, epoch %d)\n",
		s.Summary, printable.Text(s.StateTable), printable.Text(s.Incarnation), s.Epoch)
	for _, section := range []func(*strings.Builder){s.writeRules, s.writeSeeding, s.writeTasks, s.writeParked, s.writeShards} {
		section(&b)
	}
	writeMissing(&b, s.Missing)
	return b.String()
}

func (s *Report) writeRules(b *strings.Builder) {
	b.WriteString("\nrules\n")
	table := output.NewColumns("  ", "NAME", "ID", "KIND", "STATE", "SINCE EPOCH")
	for _, r := range s.Rules {
		since := "-"
		if r.State != notRegistered {
			since = strconv.Itoa(r.Epoch)
		}
		table.Add(r.Name, output.Dash(r.ID), output.Dash(r.Kind), r.State, since)
	}
	b.WriteString(table.Text())
	for _, r := range s.Rules {
		if r.State == notRegistered {
			fmt.Fprintf(b, "  %s is %s: %s\n", printable.Text(r.Name), r.State, r.Note)
		}
	}
}

// writeSeeding says how far seeding is, what that means, and what is to be done.
func (s *Report) writeSeeding(b *strings.Builder) {
	if s.seeded || s.registeredRules() == 0 {
		return
	}
	fmt.Fprintf(b, "\nseeding\n  %s\n", s.Seeding.line())
	if slices.ContainsFunc(s.Rules, func(r ruleStatus) bool { return !r.live && r.State != notRegistered }) {
		fmt.Fprintf(b, "  a rule that is not live %s\n", seedingNote)
	} else {
		fmt.Fprintf(b, "  an aggregate may show its former value until then: %s\n", remedyRun)
	}
}

func (s *seedingStatus) line() string {
	if s == nil {
		return "no place is saved yet: not begun, or at the first items"
	}
	of := fmt.Sprintf("level %d", s.Level)
	if s.Level < 0 {
		of = "all levels"
	}
	switch s.Phase {
	case "clean":
		return fmt.Sprintf("taking back what former rules wrote on items: %s so far", printable.Counted(s.Items, "item"))
	case "sweep":
		return fmt.Sprintf("taking back what former rules kept in the state table: %s so far", printable.Counted(s.Items, "row"))
	}
	doing := map[string]string{"derive": "deriving what the items ask for", "show": "writing aggregates"}[s.Phase]
	return fmt.Sprintf("%s, for rules of %s: %s so far", cmp.Or(doing, printable.Text(s.Phase)), of, printable.Counted(s.Items, "item"))
}

func (s *Report) writeTasks(b *strings.Builder) {
	if len(s.Tasks) == 0 {
		b.WriteString("\nfan-outs: none to be finished\n")
		return
	}
	fmt.Fprintf(b, "\nfan-outs: %s to be finished\n", printable.Grouped(len(s.Tasks)))
	table := output.NewColumns("  ", "RULE", "PARENT", "CHILDREN SO FAR", "SINCE")
	for _, t := range s.Tasks {
		table.Add(t.Rule, t.Parent, printable.Grouped(t.Children), output.Dash(t.Since))
	}
	b.WriteString(table.Text())
}

func (s *Report) writeParked(b *strings.Builder) {
	if s.Parked.Total == 0 {
		b.WriteString("\nparked: nothing\n")
		return
	}
	fmt.Fprintf(b, "\nparked: %s, see `dynamill parked list`\n", printable.Grouped(s.Parked.Total))
	table := output.NewColumns("  ", "CODE", "NUMBER")
	for _, code := range slices.Sorted(maps.Keys(s.Parked.ByCode)) {
		table.Add(code, printable.Grouped(s.Parked.ByCode[code]))
	}
	b.WriteString(table.Text())
}

func (s *Report) writeShards(b *strings.Builder) {
	switch {
	case !s.Leases.Exists:
		fmt.Fprintf(b, "\nshards: no lease table %s, so no `dynamill run` has read the stream; with Lambda that is normal\n",
			printable.Text(s.Leases.Table))
		return
	case len(s.Leases.Shards) == 0:
		fmt.Fprintf(b, "\nshards: none in lease table %s yet\n", printable.Text(s.Leases.Table))
		return
	}
	fmt.Fprintf(b, "\nshards in lease table %s\n", printable.Text(s.Leases.Table))
	stream := ""
	for _, shard := range s.Leases.Shards {
		if shard.Stream != stream {
			stream = shard.Stream
			fmt.Fprintf(b, "  %s\n", printable.Text(stream))
			s.writeStream(b, stream)
		}
	}
}

// writeStream lists the shards of one stream. A table may have had several.
func (s *Report) writeStream(b *strings.Builder, stream string) {
	table := output.NewColumns("    ", "SHARD", "OWNER", "LAG", "CHECKPOINT", "LEASE COUNTER")
	for _, shard := range s.Leases.Shards {
		if shard.Stream == stream {
			table.Add(shard.Shard, shard.owner(), shard.lag(), shard.Checkpoint, strconv.FormatInt(shard.Counter, 10))
		}
	}
	b.WriteString(table.Text())
}

// owner names the process that reads the shard, and says if it seems dead.
func (s *Shard) owner() string {
	if s.Silent {
		return s.Owner + " (silent)"
	}
	return output.Dash(s.Owner)
}

// lag says how far behind a shard is. If the stream was not looked at, one without an owner may be
// less so than it seems: whether anything came after its newest record is not known.
func (s *Shard) lag() string {
	if s.Lag == nil {
		return "-"
	}
	text := (time.Duration(*s.Lag) * time.Second).String()
	if s.Owner == "" && *s.Lag > 0 && !s.looked {
		return "at most " + text
	}
	return text
}
