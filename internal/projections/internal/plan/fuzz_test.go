package plan_test

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/handlers"
	"github.com/dynamill/dynamill/internal/projections/internal/effects"
	"github.com/dynamill/dynamill/internal/projections/internal/kinds"
	"github.com/dynamill/dynamill/internal/projections/internal/leftovers"
	"github.com/dynamill/dynamill/internal/projections/internal/pack"
	"github.com/dynamill/dynamill/internal/projections/internal/plan"
	"github.com/dynamill/dynamill/internal/projections/internal/stamp"
	"github.com/dynamill/dynamill/internal/rules"
)

// deskRules have something of every kind, and entities that share a key.
const deskRules = `version: 1
table: { keys: [pk, sk] }
entities:
  User:   { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Post:   { key: { pk: "POST#${authorId}", sk: "POST#${nr}" }, unique: postId }
  Ticket: { key: { pk: "DESK#${ticketId}", sk: "INFO" }, match: { kind: ticket } }
  Bill:   { key: { pk: "DESK#${ticketId}", sk: "INFO" }, match: { kind: bill } }
  Voter:  { key: { pk: "VOTER#${userId}",  sk: "INFO" } }
  Copy:   { key: { pk: "COPY#${ticketId}", sk: "INFO" } }
rules:
  author:  { copy: [name as author, age as authorAge], from: User, to: Ticket, by: userId }
  effort:  { sum: effort, of: Ticket, as: User.effort, by: userId, write_shards: 2 }
  tickets: { count: Ticket, as: Post.tickets, by: postId, where: size(title) > 2 }
  bills:   { count: Bill, as: Ticket.bills, by: { ticketId: of } }
  voters:  { mirror: Ticket, as: Voter, attributes: [title], by: userId }
  copies:  { mirror: Ticket, as: Copy, attributes: [title, userId] }
`

func deskPlanner(t testing.TB) *plan.Planner {
	t.Helper()
	set, err := rules.Load("desk", []byte(deskRules), kinds.All)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.CheckKeys(change.KindString, change.KindString); err != nil {
		t.Fatal(err)
	}
	ids := map[*rules.Rule]string{}
	for _, r := range set.Rules {
		ids[r] = r.Name
	}
	p := &plan.Planner{Bindings: plan.Bind(set, ids), Incarnation: "i", Epoch: 2}
	for _, r := range set.Rules { // as if a rule of the same meaning had retired
		b := plan.NewFormer(r, r.Name+"-0")
		b.Retired.Store(true)
		p.AddFormer(b)
	}
	return p
}

// lookAt has a planner look at images in every way that it can.
func lookAt(t *testing.T, p *plan.Planner, key change.Key, old, new change.Image) {
	t.Helper()
	position, err := change.NewPosition("2026-01-01T00:00:00.000", "7")
	if err != nil {
		t.Fatal(err)
	}
	records := []change.Record{
		{Key: key, Position: position, Old: old, New: new}, {Key: key, Position: position, New: old},
		{Key: key, Position: position, Old: new, New: old}, {Key: key, Position: position, Old: new},
	}
	pl := p.Plan(records, leftovers.PlanRecord)
	for _, mv := range pl.Moves.All() {
		pl.AddRollups(mv, 0)
		work(p, mv)
	}
	late := p.Late(records).Of(key)
	for _, img := range []change.Image{old, new} {
		work(p, p.Rederive(&plan.Changes{}, key, nil, img, plan.Everything, *late))
		leftovers.On(p, key, img)
		leftovers.PlanItem(p, &plan.Changes{}, key, img, plan.Everything)
		if img == nil {
			continue
		}
		for id, left := range leftovers.Found(pl).All() {
			leftovers.Reassess(p, id, left, img)
		}
	}
}

// work does with a move what applying it does.
func work(p *plan.Planner, mv *plan.Move) {
	for steps := 0; !pack.Fits(p, mv) && steps < plan.TransactActionsMax; steps++ {
		pack.Divide(p, mv)
		pack.Difference(p, mv)
		mv.Advance(p.Epoch)
	}
	pack.Difference(p, mv)
	pack.Of(p, []*plan.Move{mv})
	_, _, _ = mv.Idle(), mv.HoldsStaleEffects(), mv.MarkedEntry()
}

// FuzzStamp puts any text behind a stamp's own context on items of every rule: it
// either reads back as it was written, or counts as no stamp.
func FuzzStamp(f *testing.F) {
	for _, rest := range []string{
		"", "a b", "0--d", string(stamp.VersionOf(1, 4)) + "-d", "1PN9Sq--060de", "0CMW2F--00", "00z1234-d", "00yzzzzzzzzzzz-d", "o1zzz-~",
		"0zl#060d",
		"000001|00000000000000000004 d", "0-uzzzzzz" + stamp.ShortDigest(stamp.DigestDigits, s("x")),
	} {
		f.Add(rest, "Ann", true)
		f.Add(rest, "", false)
	}
	p := deskPlanner(f)
	f.Fuzz(func(t *testing.T, rest, value string, ticket bool) {
		kind := "bill"
		if ticket {
			kind = "ticket"
		}
		for _, item := range []change.Item{
			{"pk": s("USER#1"), "sk": s("PROFILE"), "name": s(value), "effort": s(value)},
			{"pk": s("POST#1"), "sk": s("POST#1"), "postId": s("p"), "tickets": s(value)},
			{"pk": s("DESK#1"), "sk": s("INFO"), "kind": s(kind), "userId": s("1"), "author": s(value), "bills": s(value), "title": s(value)},
			{"pk": s("VOTER#1"), "sk": s("INFO"), "title": s(value)}, {"pk": s("COPY#1"), "sk": s("INFO"), "title": s(value)},
		} {
			key := change.Key{Partition: item["pk"].Text(), Sort: item["sk"].Text()}
			plain := change.Item{}
			for name, v := range item {
				plain[name] = v
			}
			for _, r := range p.Set.Rules {
				context := stamp.Context("i", key, within(r, key))
				item[p.Of(r).Stamp], item[p.Of(r).Stamp+"-0"] = s(context+rest), s(context+rest)
				checkStamp(t, context+rest, context)
			}
			lookAt(t, p, key, plain, item)
		}
	})
}

// within is what the stamp of a rule on the item of the test tells beside its key.
func within(r *rules.Rule, key change.Key) string {
	switch r.Name {
	case "author":
		return "USER#1/PROFILE"
	case "tickets":
		return "p"
	case "voters", "copies":
		return ""
	}
	return key.String()
}

func checkStamp(t *testing.T, text, context string) {
	t.Helper()
	read, ok := stamp.Read(s(text), context)
	if !ok {
		return
	}
	if read.String() != text {
		t.Fatalf("stamp %q reads as %q", text, read)
	}
	checkVersion(t, read.Version)
}

func checkVersion(t *testing.T, v stamp.Version) {
	t.Helper()
	for _, w := range []stamp.Version{v, v.EpochStart(), v.UnderEpoch(stamp.EpochMax)} {
		if again, ok := stamp.ParseVersion(string(w)); !ok || again != w {
			t.Fatalf("version %q, of %q, cannot be read", w, v)
		}
	}
	if next := v.NextRederived(); len(next) == len(v.Rederived(1)) && next <= v {
		t.Fatalf("version %q comes after %q", v, next)
	}
	if v.Count() < 0 || !v.Covers(v) || !v.Covers(v.EpochStart()) {
		t.Fatalf("version %q counts %d", v, v.Count())
	}
}

// FuzzEntry reads any ledger entry: what cannot be worked with is refused, and
// what can be worked with is, from any state of the item to any other. What a
// repair leaves of an entry can be read.
func FuzzEntry(f *testing.F) {
	for _, seed := range [][4]string{
		{"effort", "+3 USER#1/PROFILE", "effort USER#1/PROFILE", "0-"}, {"tickets", "*p", "tickets p", "1-"},
		{"voters", "=00 VOTER#1/INFO", "voters VOTER#1/INFO", "0PN9Sq--06"}, {"copies", "=00 COPY#1/INFO", "copies x", ""},
		{"@Post ", "@p", "@Post p", "x"}, {"author", "*x", "author x", "0-"}, {"effort", "=0000x", "", "qNPV-"},
		{"voters", "*x", "", "0-"}, {"effort-0", "!key.smuggled", "effort-0 x", "0-"}, {"new", "?", "new", "0zzz"},
		{"effort", "+1e125 USER#1/PROFILE", "", "0-"}, {"@Post ", "*x", "", "0-"}, {"copies", "=0000NOWHERE", "", "0-"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], "1", true)
		f.Add(seed[0], seed[1], seed[2], seed[3], "-1", false)
	}
	p := deskPlanner(f)
	p.CanExist = func(k change.Key) bool { return k.Partition != "" && k.Sort != "" }
	f.Fuzz(func(t *testing.T, id, effect, due, at, rederived string, texts bool) {
		row := change.Item{
			"a": s(at), "e": change.Set(change.KindStringSet, []string{id + effect, "effort*USER#2/PROFILE"}),
			"due":       change.Set(change.KindStringSet, []string{due}),
			"rederived": change.Number(rederived),
		}
		if !texts {
			row["due"] = s(due)
			delete(row, "rederived")
		}
		left := p.Readable(row, time.Unix(1, 0))
		if _, err := p.ReadEntry(left); err != nil {
			t.Fatalf("what is left of %v cannot be read: %v", row, err)
		}
		ent, err := p.ReadEntry(row)
		if err != nil {
			if again, err := p.ReadEntry(row); err == nil {
				t.Fatalf("read as %v the second time", again)
			}
			return
		}
		checkVersion(t, ent.At)
		key := change.Key{Partition: "DESK#1", Sort: "INFO"}
		for _, img := range []change.Image{nil, change.Item{"kind": s("ticket"), "userId": s("1"), "postId": s("p"), "title": s("abc"),
			"effort": change.Number("2")}, change.Item{"kind": s("bill"), "of": s("1")}} {
			for _, sc := range []plan.Scope{plan.Sources, plan.Itself, plan.Everything} {
				pl := &plan.Changes{}
				mv := p.Rederive(pl, key, ent, img, sc, plan.Late{})
				pl.AddRollups(mv, mv.First)
				work(p, mv)
			}
			mv := &plan.Move{Key: key, Old: p.EffectsOf(key, img), New: effects.ByKey{}, To: stamp.VersionAt(2, change.Position{})}
			mv.Expect(ent, p.Bindings)
			work(p, mv)
		}
	})
}

// FuzzPlan has a planner plan whatever a Lambda event tells: no image is too odd to be looked at.
func FuzzPlan(f *testing.F) {
	for _, images := range []string{
		`"NewImage":{"kind":{"S":"ticket"},"userId":{"S":"1"},"effort":{"N":"1.5"},"title":{"S":"abc"},"postId":{"N":"7"},"_dm_author":{"S":"a b c"}}`,
		`"OldImage":{"kind":{"S":"ticket"},"userId":{"S":"1#2"},"effort":{"S":"much"},"title":{"L":[{"M":{}}]}},"NewImage":{"kind":{"S":"bill"},"of":{"BOOL":true},"_dm_author":{"S":"contexts0--y"}}`,
		`"OldImage":{"kind":{"NULL":true},"userId":{"SS":["a"]},"_dm_effort-0":{"S":"contexts0--y"}}`,
	} {
		f.Add([]byte(`{"Records":[{"eventID":"1","eventName":"MODIFY","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/app/stream/2026-01-01T00:00:00.000",` +
			`"dynamodb":{"Keys":{"pk":{"S":"DESK#1"},"sk":{"S":"INFO"}},"SequenceNumber":"111","StreamViewType":"NEW_AND_OLD_IMAGES",` + images +
			`}}]}`))
	}
	p := deskPlanner(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		keysAlone := looker{func(*change.Record) {}}
		h := handlers.New(handlers.Config{
			Processor: looker{func(rec *change.Record) { lookAt(t, p, rec.Key, rec.Old, rec.New) }}, Rederiver: keysAlone, Parker: keysAlone,
			PartitionKey: "pk", SortKey: "sk", Logger: slog.New(slog.DiscardHandler), PieceFirst: 100,
		})
		_, _ = h.Invoke(t.Context(), payload) // FuzzInvoke holds what it answers
	})
}

// looker looks at each record that a handler gives it.
type looker struct{ look func(*change.Record) }

func (l looker) Process(_ context.Context, records []change.Record) (int, error) {
	for i := range records {
		l.look(&records[i])
	}
	return len(records), nil
}

func (l looker) RederiveRecords(_ context.Context, records []change.Record) error {
	for i := range records {
		l.look(&records[i])
	}
	return nil
}

func (looker) ParkRecord(context.Context, string, string, string, []byte) error { return nil }

func TestParseVersionRefusesOtherTexts(t *testing.T) {
	position, err := change.NewPosition("2026-01-01T00:00:00.000", "7")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"": false, "x": false, "0": false, "-": false, "00": false, "000001|": false, "0 ": false, "0-|": false, " -": false,
		"0-": true, "--": true, "0-0": true, "0--": false, "0-00": false, "0-n": true, "0-oo": true, "0-on": false, "0-o": false, "0-p-o": false,
		"qNPV-": true, "qNPW-": false, "zNPV-": false, // epochs 100,000 and 100,001
		"00-": true, "00m": true, "00on": false, "00oo": true, "00y6zzzzzzzzzz": true, "00y7---------": false, "00y7----------": false,
		"0zl#06": true, "0zl#-": true, "0zl06": false, "0z#06": false, "0zl#0-": false, "0zl#1-6": false, "0zl#1": false, "0zl|m#06": false,
		"0z2026-01-01T00:00:00.000#06": false, "0z2026-01-01T00:00:00Z#06": true,
		"0zl#50vagc-": false, "0zl#50vagbz": true, "0zl#Ovagbz" + strings.Repeat("-", 20): false, "0zl#M1RE" + strings.Repeat("vagbz", 4): true,
		string(stamp.VersionAt(1, position)): true, string(stamp.VersionAt(1, position).Rederived(3)): true,
		string(stamp.VersionOf(7, math.MaxInt64)): true,
	} {
		if v, ok := stamp.ParseVersion(text); ok != want || ok && string(v) != text || !ok && v != "" {
			t.Errorf("%q is read as %q: %v, want %v", text, v, ok, want)
		}
	}
}
