package projections

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
	"github.com/dynamill/dynamill/internal/sim/worldsize"
)

// drawing draws rule files of which any may follow any other: keys, matches, unique
// values, names, conditions, write shards, attributes and rules all differ.
type drawing struct {
	rnd *rand.Rand
	b   strings.Builder
}

func (d *drawing) pick(from ...string) string { return from[d.rnd.IntN(len(from))] }

// maybe writes one of some lines, in so many cases of a hundred.
func (d *drawing) maybe(percent int, lines ...string) {
	if d.rnd.IntN(100) < percent {
		d.b.WriteString("  " + d.pick(lines...) + "\n")
	}
}

func (d *drawing) entities() {
	d.b.WriteString("version: 1\ntable: { keys: [pk, sk] }\nentities:\n")
	d.maybe(100, `User: { key: { pk: "USER#${userId}", sk: "PROFILE" }`+d.pick("", ", unique: handle", ", unique: nick")+" }")
	d.maybe(100, `Group: { key: { pk: "GROUP#${groupId}", sk: "METADATA" }`+
		d.pick("", ", unique: slug", ", unique: groupId")+d.pick("", "", ", match: { kind: open }")+" }")
	d.maybe(100, `Membership: { key: { pk: "USER#${userId}", sk: "`+d.pick("GROUP#${groupId}", "GROUP#${groupId}", "GROUP#${groupId...}")+
		`" }`+d.pick("", "", ", match: { state: on }")+" }")
	member := d.pick(`pk: "GROUP#${groupId}", sk: "USER#${userId}"`, `pk: "GROUP#${groupId}", sk: "MEMBER#${userId}"`,
		`pk: "MEMBER#${userId}", sk: "GROUP#${groupId}"`, `pk: "GROUP#${groupId}", sk: "USER#${userId}"`)
	d.maybe(100, "Member: { key: { "+member+" }"+d.pick("", "", ", match: { sort: member }")+" }")
	d.maybe(100, `Roll: { key: { pk: "ROLL#${role}", sk: "THING" } }`)
	d.b.WriteString("rules:\n")
}

func (d *drawing) mirrors() {
	conditioned := d.pick("", "", `, where: role == "admin"`, ", where: weight > 1")
	d.maybe(85, d.pick("list", "list", "list", "liste")+": { mirror: Membership, as: Member, attributes: "+
		d.pick("[role]", "[role, weight]", "[weight, joined]")+conditioned+" }")
	d.maybe(60, d.pick("roll", "roll", "roll", "rolle")+": { mirror: Membership, as: Roll, by: role, attributes: "+
		d.pick("[weight]", "[joined]", "[weight, joined]")+d.pick("", ", where: weight > 1")+" }",
		"roll: { mirror: Group, as: Roll, by: { role: slug }, attributes: [name] }")
}

func (d *drawing) sums() {
	entities := d.b.String()
	byGroup := []string{""}
	switch {
	case strings.Contains(entities, "unique: slug"):
		byGroup = []string{", by: { slug: slug }", ", by: { slug: where }", ""}
	case strings.Contains(entities, "unique: groupId"):
		byGroup = []string{", by: groupId", ""}
	}
	owner := "{ userId: owner }"
	if strings.Contains(entities, "unique: handle") {
		owner = "{ handle: owner }"
	}
	shards := d.pick("", "", ", write_shards: 2", ", write_shards: 5")
	d.maybe(85, d.pick("count", "count", "count", "counted")+": { count: Membership, as: Group."+
		d.pick("n", "n", "m")+d.pick("", `, where: role == "admin"`)+shards+d.pick(byGroup...)+" }")
	d.maybe(70, d.pick("sum", "sum", "sum", "summed")+": { sum: weight, of: Membership, as: Group."+d.pick("w", "w", "x")+d.pick(byGroup...)+
		" }")
	d.maybe(60, "owned: { count: Group, as: User.groups, by: "+owner+" }", "owned: { count: Membership, as: User.groups }",
		"owned: { count: Membership, as: User.groups, by: "+owner+" }")
	d.maybe(70, d.pick("members", "members", "members", "mm")+": { count: Member, as: User.members"+d.pick("", `, where: role == "admin"`)+
		" }", "members: { count: Member, as: Group.mine }")
}

func (d *drawing) copies() {
	d.maybe(70, "gname: { copy: "+d.pick("name as gname", "n as gname", "[name as gname, slug as gslug]", "name as gtitle")+
		", from: Group, to: "+d.pick("Membership", "Member", "Membership")+" }")
	d.maybe(70, "uname: { copy: "+d.pick("name as uname", "nick as uname", "[name as uname, nick as unick]")+", from: User, to: "+
		d.pick("Membership", "Member", "Group, by: { userId: owner }", "Group, by: { userId: boss }")+d.pick("", `, if_missing: { uname: "?" }`)+
		" }")
}

// drawnRules is a rule file that is none with problems.
func drawnRules(rnd *rand.Rand) string {
	for {
		d := &drawing{rnd: rnd}
		d.entities()
		d.mirrors()
		d.sums()
		d.copies()
		file := d.b.String()
		if _, err := rules.Load("dynamill.yaml", []byte(file), Kinds); err == nil {
			return file
		}
	}
}

// drawnItem is one that some of the drawn rules read.
func drawnItem(rnd *rand.Rand) change.Item {
	user, group := drawn(rnd, "u0", "u1").Text(), drawn(rnd, "g0", "g1").Text()
	membership := change.Item{
		"pk": s("USER#" + user), "sk": s("GROUP#" + group), "role": drawn(rnd, "admin", "member"), "joined": drawn(rnd, "2026", "2027"),
		"weight": change.Number(drawn(rnd, "1", "2", "3").Text()), "slug": drawn(rnd, "s0", "s1"), "where": drawn(rnd, "s0", "s1"),
		"owner": drawn(rnd, "h0", "h1"), "state": drawn(rnd, "on", "on", "off"),
	}
	return [...]change.Item{
		membership, membership,
		{"pk": s("USER#" + user), "sk": s("PROFILE"), "name": drawn(rnd, "a", "b", "c"), "nick": drawn(rnd, "d", "e"),
			"handle": drawn(rnd, "h0", "h1")},
		{
			"pk": s("GROUP#" + group), "sk": s("METADATA"), "name": drawn(rnd, "f", "g"), "slug": drawn(rnd, "s0", "s1"),
			"kind": drawn(rnd, "open", "open", "shut"), "owner": drawn(rnd, "u0", "u1", "h0"), "boss": drawn(rnd, "u0", "u1"),
		},
	}[rnd.IntN(4)]
}

func TestAnyRulesFollowAnyOthersWhileOlderWorkersSleepAndCrash(t *testing.T) {
	for seed := range histories(worldsize.Of(30, 6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 99))
			file := drawnRules(rnd)
			h := &ruleHistory{
				world: newWorld(t, file), rnd: rnd, files: []string{file}, base: map[change.Key]change.Item{}, tale: tale{item: drawnItem},
			}
			h.live(func() string {
				if h.chance(3) {
					return h.files[rnd.IntN(len(h.files))]
				}
				return drawnRules(rnd)
			})
			h.judge()
		})
	}
}
