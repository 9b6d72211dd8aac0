package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/rules"
)

// form is one kind of row: how its key looks, and its attributes beside it.
type form struct {
	partition, sort string   // the sort key, or, ending in "/" or ":", or empty, how it begins
	needs, may      []string // attributes
}

// rowForms are all rows that docs/state-table.md knows, each partition key whole
// or up to a "/"; but for tasks, of which none is left when all is quiet.
var rowForms = []form{
	{"registry", "table", []string{"table", "tableId", "incarnation", "epoch", "created", "format"},
		[]string{"live", "leases", "besideFunction"}},
	{"registry", "rule/", []string{"name", "fingerprint", "state", "epoch"},
		[]string{"file", "writeShardsMax", "locator", "cleaned", "generation", "begun", "counted", "stream", "located"}},
	{"registry", "file/", []string{"text"}, nil},
	{"registry", "seeding", []string{"incarnation", "epoch", "level", "phase", "items", "changes"}, []string{"last"}},
	{"i/", "e", []string{"a"}, []string{"e", "item", "rederived", "due", "ttl"}},
	{"sum/", "a", []string{"value", "members", "ops"}, []string{"expired", "listed"}}, // and parts: see audit.parts
	{"member/", "", []string{"shown"}, []string{"item"}},
	{"fold/", "base", []string{"ops", "group"}, []string{"value", "members", "refused"}},
	{"fold/", "lane/", []string{"ops", "group", "hw"}, []string{"value", "members", "refused"}},
	{"lane/", "", []string{"shard", "lane", "from"}, []string{"heir"}},
	{"counted/", "", []string{"until", "read"}, nil},
	{"claims/", "claims", []string{"changes"}, []string{"sources", "expired", "listed"}},
	{"locator/", "locator", []string{"changes"}, []string{"items", "listed"}},
	{"ref/", "", []string{"a"}, []string{"child"}},
	{"parent/", "position", nil, []string{"a", "changes", "deleted", "former", "ttl"}}, // one of the first two: see positions
	{"parked", "contested:", []string{"id", "rule", "code", "reason", "parking", "parkedAt"}, []string{"item", "value"}},
	{"parked", displayPrefix, []string{"id", "rule", "item", "code", "reason", "parking", "parkedAt"}, nil},
	{"parked", "values:", []string{"id", "rule", "code", "reason", "parking", "parkedAt"}, []string{"item", "value"}},
	{"parked", "", []string{"id", "rule", "item", "code", "reason", "parking", "parkedAt"}, []string{"position", "with"}},
	{"missing", "", []string{"entity", "sources", "targets", "examples", "about", "all", "whole", "at", "by"},
		[]string{"unique", "otherMissing", "otherExists"}},
	{"budget", "", []string{"perSecond", "spending", "waits", "at", "ttl"}, nil},
	{"heals/", "", []string{"corrections", "ttl"}, nil},
	{"replay/", "run", []string{"generation", "passes", "source", "started", "ttl"}, []string{"segments", "rules", "finished", "items"}},
	{"replay/", "piece/", []string{"counter", "items", "ttl"}, []string{"cursor", "owner", "done"}},
}

func (f form) fits(key change.Key) bool {
	begins := func(text, form string) bool {
		return text == form || (form == "" || strings.HasSuffix(form, "/") || strings.HasSuffix(form, ":")) && strings.HasPrefix(text, form)
	}
	return begins(key.Partition, f.partition) && begins(key.Sort, f.sort)
}

// forms checks that there is no row, and on no row an attribute, that the
// documents do not know. A row that is not known is looked at no further.
func (a *audit) forms() {
	for _, key := range a.keys {
		row := a.rows[key]
		i := slices.IndexFunc(rowForms, func(f form) bool { return f.fits(key) })
		if i < 0 {
			a.differs("", key, "", change.Value{}, change.Map(row))
			delete(a.rows, key)
			continue
		}
		f := rowForms[i]
		for _, name := range f.needs {
			if _, ok := row[name]; !ok {
				a.differs("", key, name, change.String("(any)"), change.Value{})
			}
		}
		for name, v := range row {
			if f.partition == "sum/" && strings.Contains(name, "/") {
				continue
			}
			if name != "pk" && name != "sk" && !slices.Contains(f.needs, name) && !slices.Contains(f.may, name) {
				a.differs("", key, name, change.Value{}, v)
			}
		}
		if f.partition == "heals/" {
			a.corrections(key)
		}
	}
	a.keys = sortedKeys(a.rows)
}

// corrections checks a count of corrections: of a rule that there is, and expiring within 20 minutes.
func (a *audit) corrections(key change.Key) {
	row := a.rows[key]
	if a.ids[idIn(key.Partition)] == nil {
		a.differs("", key, "", change.Value{}, change.Map(row))
	}
	ttl, err := strconv.ParseInt(row["ttl"].Text(), 10, 64)
	if latest := a.now.Add(20 * time.Minute).Unix(); err != nil || ttl > latest {
		a.differs("", key, "ttl", change.Number(strconv.FormatInt(latest, 10)), row["ttl"])
	}
}

// version checks the version in a row's attribute a: well formed, and of no epoch that is yet to come. That of a mark which was taken away
// may be higher than a record's.
func (a *audit) version(key change.Key) {
	at := a.rows[key]["a"]
	epoch, place, rest, ok := cutVersion(at.Text())
	if rule := a.ids[idIn(key.Partition)]; rest != "" && rule != nil && rule.Deletes() && !a.rows[key]["deleted"].Bool() {
		_, rest, ok = cutNumber(rest)
	}
	if !ok || rest != "" || strings.HasPrefix(place, "0") || epoch > a.epoch {
		a.differs("", key, "a", change.String(fmt.Sprint("a position, epoch at most ", a.epoch)), at)
	}
}

// registry learns the rules' ids, and checks that every rule is live, that there
// is none too many, and that no seeding is under way.
func (a *audit) registry() {
	registry := func(sort string) (change.Key, change.Item) {
		key := change.Key{Partition: "registry", Sort: sort}
		return key, a.rows[key]
	}
	tableKey, table := registry("table")
	epoch, err := strconv.Atoi(table["epoch"].Text())
	if err != nil {
		a.differs("", tableKey, "", change.Map(nil), change.Value{})
		epoch = 999999 // which epoch is yet to come cannot be told
	}
	a.epoch = int64(epoch)
	a.bind()
	for _, rule := range a.set.Rules {
		key, row := registry("rule/" + a.names[rule])
		if row == nil || row["fingerprint"].Text() != rule.Fingerprint {
			a.found = append(a.found, Difference{Rule: rule.Name, State: true, Key: key, Attribute: "fingerprint",
				Want: change.String(rule.Fingerprint), Got: row["fingerprint"]})
			continue
		}
		for name, want := range map[string]string{"name": rule.Name, "state": "live"} {
			if row[name].Text() != want {
				a.differs(a.names[rule], key, name, change.String(want), row[name])
			}
		}
		if a.suffixes(a.names[rule]) < rule.Suffixes() {
			a.differs(a.names[rule], key, "writeShardsMax", change.Number(strconv.Itoa(rule.Suffixes())), row["writeShardsMax"])
		}
		if rowEpoch, err := strconv.Atoi(row["epoch"].Text()); err != nil || rowEpoch > epoch {
			a.differs(a.names[rule], key, "epoch", table["epoch"], row["epoch"])
		}
	}
	for _, key := range a.under("registry") {
		if id, ok := strings.CutPrefix(key.Sort, "rule/"); ok && a.ids[id] == nil && !isFormer(a.rows[key]) {
			a.differs("", key, "", change.Value{}, change.Map(a.rows[key]))
		}
	}
	key, seeding := registry("seeding")
	for name, idle := range map[string]change.Value{"phase": change.String(""), "last": {}} {
		if seeding != nil && !seeding[name].Equal(idle) {
			a.differs("", key, name, idle, seeding[name])
		}
	}
}

// bind finds each rule in the registry, by name and fingerprint, or, renamed, by
// fingerprint. A rule that is not there goes by its name.
func (a *audit) bind() {
	take := func(rule *rules.Rule, id string) {
		a.names[rule], a.ids[id] = id, rule
	}
	for _, named := range []bool{true, false} {
		for _, key := range a.under("registry") {
			id, ok := strings.CutPrefix(key.Sort, "rule/")
			if !ok || a.ids[id] != nil || isFormer(a.rows[key]) {
				continue
			}
			row := a.rows[key]
			for _, rule := range a.set.Rules {
				if a.names[rule] == "" && row["fingerprint"].Text() == rule.Fingerprint && (!named || row["name"].Text() == rule.Name) {
					take(rule, id)
					break
				}
			}
		}
	}
	for _, rule := range a.set.Rules {
		if a.names[rule] == "" && a.ids[rule.Name] == nil {
			take(rule, rule.Name)
		}
		if locator := a.rows[change.Key{Partition: "registry", Sort: "rule/" + a.names[rule]}]["locator"].Text(); rule.ByUnique && locator != "" {
			a.locators[soughtBy(rule).Name] = locator
		} else if rule.ByUnique {
			a.locators[soughtBy(rule).Name] = soughtBy(rule).Name
		}
	}
}
