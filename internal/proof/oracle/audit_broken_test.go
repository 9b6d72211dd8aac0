package oracle

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
)

// breakage is one thing done to a moment at which all is right, and the
// differences that must come of it, each as the line begins.
type breakage struct {
	do     func(m moment) moment
	except []Exception
	want   []string
}

const (
	longAgo   = "0Clenuk-00"
	yetToCome = "1-"
)

func set(members ...string) change.Value { return change.Set(change.KindStringSet, members) }

// effects makes an entry's effects from rule ids and texts in turn.
func effects(pairs ...string) change.Value {
	fields := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i]] = pairs[i+1]
	}
	return EffectsValue(fields)
}

// row is a breakage that changes or makes one row.
func row(partition, sort string, attributes ...any) func(m moment) moment {
	return func(m moment) moment { return m.row(partition, sort, attributes...) }
}

func gone(partition, sort string) func(m moment) moment {
	return func(m moment) moment { return m.withoutRow(partition, sort) }
}

// ttl is a breakage that gives a row a ttl this long after the moment.
func ttl(partition, sort string, ahead time.Duration) func(m moment) moment {
	return func(m moment) moment { return m.row(partition, sort, "ttl", int(m.now.Add(ahead).Unix())) }
}

var groupsBreakages = map[string]breakage{
	"nothing": {do: func(m moment) moment { return m }},

	// 1. accumulators
	"a sum that is wrong": {do: row("sum/member-sum/GROUP#dev%2FMETADATA/0", "a", "value", 8), want: []string{
		"state sum/member-sum/GROUP#dev%2FMETADATA value: want 7, got 8 (rule member-sum)"}},
	"a count of members that is wrong": {do: row("sum/member-sum/GROUP#dev%2FMETADATA/0", "a", "members", 3), want: []string{
		"state sum/member-sum/GROUP#dev%2FMETADATA members: want 2, got 3 (rule member-sum)"}},
	"a count of members that is a text": {do: row("sum/member-sum/GROUP#ops%2FMETADATA/0", "a", "members", "0"), want: []string{
		`state sum/member-sum/GROUP#ops%2FMETADATA/0 a members: want 0, got "0"`}},
	"a lost accumulator": {do: gone("sum/member-count/GROUP#dev%2FMETADATA/0", "a"), want: []string{
		"state sum/member-count/GROUP#dev%2FMETADATA members: want 1, got 0 (rule member-count)",
		"state sum/member-count/GROUP#dev%2FMETADATA value: want 1, got 0 (rule member-count)"}},
	"a group without contributions that is not 0": {do: row("sum/member-sum/GROUP#ops%2FMETADATA/0", "a", "value", 1),
		want: []string{
			"state sum/member-sum/GROUP#ops%2FMETADATA value: want 0, got 1 (rule member-sum)"}},
	"a group that nothing ever added to": {do: row("sum/member-sum/GROUP#x%2FMETADATA/0", "a", "value", 1, "members", 0,
		"ops", 1),
		want: []string{
			"state sum/member-sum/GROUP#x%2FMETADATA value: want 0, got 1 (rule member-sum)"}},
	"an accumulator without operations": {do: row("sum/member-sum/GROUP#ops%2FMETADATA/0", "a", "ops", 0), want: []string{
		"state sum/member-sum/GROUP#ops%2FMETADATA/0 a ops: want 1, got 0"}},
	"a value that is no number": {do: row("sum/member-sum/GROUP#ops%2FMETADATA/0", "a", "value", "x"), want: []string{
		`state sum/member-sum/GROUP#ops%2FMETADATA/0 a value: want 0, got "x"`}},
	"a suffix that no roll-up reads": {do: row("sum/member-sum/GROUP#ops%2FMETADATA/1", "a", "value", 0, "members", 0, "ops",
		2),
		want: []string{
			"state sum/member-sum/GROUP#ops%2FMETADATA/1 a: want no item"}},
	"an accumulator of a rule that is none": {do: row("sum/member-list/GROUP#ops%2FMETADATA/0", "a", "value", 0, "members", 0,
		"ops", 2),
		want: []string{
			"state sum/member-list/GROUP#ops%2FMETADATA/0 a: want no item"}},

	// 2. ledger entries
	"a lost entry": {do: gone("i/USER#ada/GROUP#dev", "e"), want: []string{
		"state i/USER#ada/GROUP#dev e: want an item, got none"}},
	"another amount": {do: row("i/GROUP#dev/USER#ada", "e", "e",
		effects("member-count", "*GROUP#dev/METADATA", "member-sum", "+6 GROUP#dev/METADATA")), want: []string{
		"state i/GROUP#dev/USER#ada e e: want SS{"}},
	"a lost effect": {do: row("i/GROUP#dev/USER#ada", "e", "e", effects("member-count", "*GROUP#dev/METADATA")), want: []string{
		"state i/GROUP#dev/USER#ada e e: want SS{"}},
	"another mirror item": {do: row("i/USER#ada/GROUP#dev", "e", "e",
		effects("member-list", "=5cb7GROUP#dev/USER#ben")), want: []string{
		"state i/USER#ada/GROUP#dev e e: want SS{"}},
	"another content": {do: row("i/USER#ada/GROUP#dev", "e", "e", effects("member-list", "=5cb8GROUP#dev/USER#ada")),
		want: []string{
			"state i/USER#ada/GROUP#dev e e: want SS{"}},
	"another code": {do: row("i/GROUP#ops/USER#ben", "e", "e",
		effects("member-count", "*GROUP#ops/METADATA", "member-sum", "!value.size")), want: []string{
		"state i/GROUP#ops/USER#ben e e: want SS{"}},
	"an entry in force that expires": {do: ttl("i/GROUP#ops/USER#ben", "e", time.Hour), want: []string{
		"state i/GROUP#ops/USER#ben e ttl: want nothing, got "}},
	"effects of an item that is gone": {do: row("i/GROUP#ops/USER#ada", "e", "e", effects("member-sum", "*GROUP#ops/METADATA")),
		want: []string{
			"state i/GROUP#ops/USER#ada e e: want nothing, got SS{"}},
	"a tombstone for ever": {do: row("i/GROUP#ops/USER#ada", "e", "ttl", nil), want: []string{
		"state i/GROUP#ops/USER#ada e ttl: want "}},
	"a tombstone for too long": {do: ttl("i/GROUP#ops/USER#ada", "e", 8*24*time.Hour+time.Minute), want: []string{
		"state i/GROUP#ops/USER#ada e ttl: want "}},
	"a tombstone that has expired": {do: ttl("i/GROUP#ops/USER#ada", "e", 0), want: []string{
		"state i/GROUP#ops/USER#ada e ttl: want "}},
	"a roll-up that is due": {do: row("i/GROUP#dev/USER#ada", "e", "due", set("x")), want: []string{
		`state i/GROUP#dev/USER#ada e due: want nothing, got SS{"x"}`}},
	"a roll-up that is due for an item that is gone": {do: row("i/GROUP#ops/USER#ada", "e", "due", set("x")), want: []string{
		`state i/GROUP#ops/USER#ada e due: want nothing, got SS{"x"}`}},
	"an entry of an epoch that is yet to come": {do: row("i/GROUP#dev/USER#ada", "e", "a", yetToCome), want: []string{
		`state i/GROUP#dev/USER#ada e a: want "a position, epoch at most 1", got "1-"`}},
	"a version that is none": {do: row("i/GROUP#dev/USER#ada", "e", "a", "00G"), want: []string{
		`state i/GROUP#dev/USER#ada e a: want "a position, epoch at most 1", got "00G"`}},

	// 3. references
	"a lost reference": {do: gone("ref/note-author/USER#ada/PROFILE", "NOTE#1/METADATA"), want: []string{
		"state ref/note-author/USER#ada/PROFILE NOTE#1/METADATA: want an item, got none (rule note-author)"}},
	"a reference to another parent": {do: row("ref/note-author/USER#ben/PROFILE", "NOTE#1/METADATA", "a", "0-"), want: []string{
		"state ref/note-author/USER#ben/PROFILE NOTE#1/METADATA: want no item, got one (rule note-author)"}},
	"a reference of a child that is gone": {do: row("ref/note-author/USER#ada/PROFILE", "NOTE#9/METADATA", "a", "0-"),
		want: []string{
			"state ref/note-author/USER#ada/PROFILE NOTE#9/METADATA: want no item, got one (rule note-author)"}},
	"a reference of a child that is gone, which may be": {do: row("ref/note-author/USER#ada/PROFILE", "NOTE#9/METADATA", "a",
		"0-"),
		except: []Exception{DanglingReferences}},
	"a reference of a rule that is none": {do: row("ref/member-sum/USER#ada/PROFILE", "NOTE#1/METADATA", "a", "0-"),
		except: []Exception{DanglingReferences}, want: []string{"state ref/member-sum/USER#ada/PROFILE NOTE#1/METADATA: want no item"}},
	"a reference of an epoch that is yet to come": {do: row("ref/note-author/USER#ada/PROFILE", "NOTE#1/METADATA", "a", yetToCome),
		want: []string{
			`state ref/note-author/USER#ada/PROFILE NOTE#1/METADATA a: want "a position, epoch at most 1", got "1-"`}},
	"a reference that names another child": {do: row("ref/note-author/USER#ada/PROFILE", "NOTE#1/METADATA", "child", "NOTE#3/METADATA"),
		want: []string{
			`state ref/note-author/USER#ada/PROFILE NOTE#1/METADATA child: want nothing, got "NOTE#3/METADATA"`}},

	// 5. parked items
	"a bad item that is not parked": {do: gone("parked", "member-sum/GROUP#ops/USER#ben"), want: []string{
		"state parked member-sum/GROUP#ops/USER#ben: want an item, got none (rule member-sum)"}},
	"a bad child that is not parked": {do: gone("parked", "note-author/NOTE#2/METADATA"), want: []string{
		"state parked note-author/NOTE#2/METADATA: want an item, got none (rule note-author)"}},
	"a good item that is parked": {do: row("parked", "note-author/NOTE#1/METADATA", "id", "note-author/NOTE#1/METADATA", "rule", "note-author",
		"item", "NOTE#1/METADATA", "code", "value.type", "reason", "r", "parking", "p", "parkedAt", "t"), want: []string{
		"state parked note-author/NOTE#1/METADATA: want no item, got one"}},
	"a bad item that is parked with another code": {do: row("parked", "note-author/NOTE#2/METADATA", "code", "value.type"), want: []string{
		`state parked note-author/NOTE#2/METADATA code: want "key.smuggled", got "value.type" (rule note-author)`}},
	"a parked record of another item": {do: row("parked", "note-author/NOTE#2/METADATA", "item", "NOTE#3/METADATA"), want: []string{
		`state parked note-author/NOTE#2/METADATA item: want "NOTE#2/METADATA", got "NOTE#3/METADATA" (rule note-author)`}},
	"a fight":               {do: fight, want: []string{"state parked note-author/NOTE#1/METADATA: want no item, got one"}},
	"a fight, which may be": {do: fight, except: []Exception{ContestedHeals}},
	"a fight, where something else may be": {do: fight, except: []Exception{RejectedWrites}, want: []string{
		"state parked note-author/NOTE#1/METADATA: want no item, got one"}},
	"an effect that was refused": {do: refuse, want: []string{
		"state i/GROUP#dev/USER#ada e e: want SS{",
		"state parked member-sum/GROUP#dev/USER#ada: want no item, got one",
		"state sum/member-sum/GROUP#dev%2FMETADATA members: want 2, got 1",
		"state sum/member-sum/GROUP#dev%2FMETADATA value: want 7, got 2"}},
	"an effect that was refused, which may be": {do: refuse, except: []Exception{RejectedWrites}},
	"an effect that could not be taken back, which may be": {do: func(m moment) moment {
		return m.row("i/GROUP#ops/USER#ada", "e", "e", effects("member-sum", "*GROUP#ops/METADATA"), "ttl", nil).
			row("sum/member-sum/GROUP#ops%2FMETADATA/0", "a", "value", 1, "members", 1).
			row("parked", "member-sum/GROUP#ops/USER#ada", "id", "member-sum/GROUP#ops/USER#ada", "rule", "member-sum",
				"item", "GROUP#ops/USER#ada", "code", "write.rejected", "reason", "r", "parking", "p", "parkedAt", "t")
	}, except: []Exception{RejectedWrites}},

	"an entry that could not be taken back stays whole": {do: func(m moment) moment {
		return m.row("i/GROUP#ops/USER#ada", "e", "e",
			effects("member-sum", "*GROUP#ops/METADATA", "member-count", "*GROUP#ops/METADATA"), "ttl", nil).
			row("sum/member-sum/GROUP#ops%2FMETADATA/0", "a", "value", 1, "members", 1).
			row("sum/member-count/GROUP#ops%2FMETADATA/0", "a", "value", 2, "members", 2).
			row("parked", "member-sum/GROUP#ops/USER#ada", "id", "member-sum/GROUP#ops/USER#ada", "rule", "member-sum",
				"item", "GROUP#ops/USER#ada", "code", "write.rejected", "reason", "r", "parking", "p", "parkedAt", "t")
	}, except: []Exception{RejectedWrites}},
	"a refusal of what an item does not ask for any more": {do: func(m moment) moment {
		return m.row("i/GROUP#ops/USER#ada", "e", "e", effects("member-sum", "!write.rejected"), "ttl", nil).
			row("parked", "member-sum/GROUP#ops/USER#ada", "id", "member-sum/GROUP#ops/USER#ada", "rule", "member-sum",
				"item", "GROUP#ops/USER#ada", "code", "write.rejected", "reason", "r", "parking", "p", "parkedAt", "t")
	}, except: []Exception{RejectedWrites}, want: []string{
		"state i/GROUP#ops/USER#ada e e: want nothing, got SS{",
		"state i/GROUP#ops/USER#ada e ttl: want "}},
	"a refusal excuses no other item": {do: func(m moment) moment {
		return refuse(m).row("i/GROUP#dev/USER#ben", "e", "e", effects("member-sum", "!write.rejected"))
	}, except: []Exception{RejectedWrites}, want: []string{
		"state i/GROUP#dev/USER#ben e e: want SS{"}},
	"a refusal excuses no other rule": {do: func(m moment) moment {
		return refuse(m).row("i/GROUP#dev/USER#ada", "e", "e", effects("member-sum", "!write.rejected"))
	}, except: []Exception{RejectedWrites}, want: []string{
		"state i/GROUP#dev/USER#ada e e: want SS{"}},
	"a display that was refused, which may be": {do: row("parked", "display:member-count/GROUP#dev/METADATA", "id",
		"display:member-count/GROUP#dev/METADATA", "rule", "member-count", "item", "GROUP#dev/METADATA", "code", "write.rejected",
		"reason", "r", "parking", "p", "parkedAt", "t"), except: []Exception{RejectedWrites}},
	"a mirror item that was refused beside the ledger, which may be": {do: row("parked", "member-list/USER#ada/GROUP#dev", "id",
		"member-list/USER#ada/GROUP#dev",
		"rule", "member-list", "item", "USER#ada/GROUP#dev", "code", "write.rejected", "reason", "r", "parking", "p", "parkedAt", "t"),
		except: []Exception{RejectedWrites}},
	"a fight over what cannot be read either, which may be": {do: row("parked", "note-author/NOTE#2/METADATA", "code", "heal.contested"),
		except: []Exception{ContestedHeals}},

	// 6. positions
	"a position that is behind": {do: row("parent/member-name/USER#ada/PROFILE", "position", "a", longAgo), want: []string{
		"state parent/member-name/USER#ada/PROFILE position a: want "}},
	"a lost position": {do: gone("parent/member-name/USER#ada/PROFILE", "position"), want: []string{
		"state parent/member-name/USER#ada/PROFILE position a: want "}},
	"a position that expires": {do: ttl("parent/member-name/USER#ada/PROFILE", "position", time.Hour), want: []string{
		"state parent/member-name/USER#ada/PROFILE position ttl: want nothing, got "}},
	"a position that expires, which may be": {do: ttl("parent/member-name/USER#ada/PROFILE", "position", time.Hour),
		except: []Exception{ExpiringPositions}},
	"a position that expires too late": {do: ttl("parent/member-name/USER#cid/PROFILE", "position", 9*24*time.Hour), want: []string{
		"state parent/member-name/USER#cid/PROFILE position ttl: want "}},
	"a position of an epoch that is yet to come": {do: row("parent/group-name/GROUP#x/METADATA", "position", "a", yetToCome), want: []string{
		`state parent/group-name/GROUP#x/METADATA position a: want "a position, epoch at most 1", got "1-"`}},
	"a position of a rule that is none": {do: row("parent/x/USER#ada/PROFILE", "position", "a", "0-"), want: []string{
		"state parent/x/USER#ada/PROFILE position: want no item"}},

	// 7. registry and forms
	"a rule that is being seeded": {do: row("registry", "rule/member-sum", "state", "seeding"), want: []string{
		`state registry rule/member-sum state: want "live", got "seeding" (rule member-sum)`}},
	"a rule of another name": {do: row("registry", "rule/member-sum", "name", "points"), want: []string{
		`state registry rule/member-sum name: want "member-sum", got "points" (rule member-sum)`}},
	"a rule with fewer suffixes than it has": {do: row("registry", "rule/member-count", "writeShardsMax", nil), want: []string{
		"state registry rule/member-count writeShardsMax: want 1, got nothing (rule member-count)",
		"state sum/member-count/GROUP#dev%2FMETADATA/0 a: want no item",
		"state sum/member-count/GROUP#ops%2FMETADATA/0 a: want no item"}},
	"a rule of an epoch that is yet to come": {do: row("registry", "rule/member-sum", "epoch", 2), want: []string{
		"state registry rule/member-sum epoch: want 1, got 2 (rule member-sum)"}},
	"a rule that is not registered": {do: gone("registry", "rule/note-author"), want: []string{
		"state registry rule/note-author fingerprint: want "}},
	"a rule that is no more": {do: row("registry", "rule/old", "name", "old", "fingerprint", "f", "state", "live", "epoch", 1), want: []string{
		"state registry rule/old: want no item, got one"}},
	"a stamp of a former rule": {do: formerStamp("DmI8NXXg0Clenuk-00Xnqqtg3N"), want: []string{
		`GROUP#dev/METADATA _dm_old: want nothing, got "DmI8NXXg0Clenuk-00Xnqqtg3N" (rule member-count)`}},
	"a text of the application's under the stamp of a former rule": {do: formerStamp("a b c")},
	"no registry": {do: gone("registry", "table"), want: []string{"state registry table: want an item, got none"}},
	"a scan under way": {do: row("registry", "seeding", "phase", "derive", "last", change.Map(nil)), want: []string{
		"state registry seeding last: want nothing, got {}",
		`state registry seeding phase: want "", got "derive"`}},
	"a row that nobody knows": {do: row("task/member-name/USER#ada", "task", "a", "0-"), want: []string{
		"state task/member-name/USER#ada task: want no item, got one"}},
	"a sort key that nobody knows": {do: row("i/USER#ada/GROUP#dev", "entries", "a", "0-", "e", effects()), want: []string{
		"state i/USER#ada/GROUP#dev entries: want no item, got one"}},
	"an attribute that nobody knows": {do: row("parked", "note-author/NOTE#2/METADATA", "tries", 3), want: []string{
		"state parked note-author/NOTE#2/METADATA tries: want nothing, got 3"}},
	"an attribute that is missing": {do: row("parked", "note-author/NOTE#2/METADATA", "parking", nil), want: []string{
		`state parked note-author/NOTE#2/METADATA parking: want "(any)", got nothing`}},
	"corrections of a rule that is none": {do: row("heals/x/USER#ada/PROFILE", "1", "corrections", 1, "ttl", 1), want: []string{
		"state heals/x/USER#ada/PROFILE 1: want no item, got one"}},
	"corrections for too long": {do: row("heals/note-author/NOTE#1/METADATA", "1", "corrections", 1, "ttl", 9999999999), want: []string{
		"state heals/note-author/NOTE#1/METADATA 1 ttl: want "}},
}

func fight(m moment) moment {
	return m.row("parked", "note-author/NOTE#1/METADATA", "id", "note-author/NOTE#1/METADATA", "rule", "note-author",
		"item", "NOTE#1/METADATA", "code", "heal.contested", "reason", "r", "parking", "p", "parkedAt", "t")
}

// formerStamp is a breakage that leaves a text where a retired rule had its stamp.
func formerStamp(text string) func(m moment) moment {
	return func(m moment) moment {
		for _, row := range m.state {
			if row["pk"].Text() == "registry" && row["sk"].Text() == "rule/member-count" {
				m = m.row("registry", "rule/old", "name", "member-count", "epoch", 1, "fingerprint", row["fingerprint"].Text(),
					"file", row["file"].Text(), "state", "retired", "cleaned", 1)
			}
		}
		m.items = slices.Clone(m.items)
		for i, it := range m.items {
			if it["pk"].Text() == "GROUP#dev" && it["sk"].Text() == "METADATA" {
				m.items[i] = maps.Clone(it)
				m.items[i][stampPrefix+"old"] = change.String(text)
			}
		}
		return m
	}
}

func refuse(m moment) moment {
	return m.row("i/GROUP#dev/USER#ada", "e", "e",
		effects("member-count", "*GROUP#dev/METADATA", "member-sum", "!write.rejected")).
		row("sum/member-sum/GROUP#dev%2FMETADATA/0", "a", "value", 2, "members", 1).
		row("parked", "member-sum/GROUP#dev/USER#ada", "id", "member-sum/GROUP#dev/USER#ada", "rule", "member-sum",
			"item", "GROUP#dev/USER#ada", "code", "write.rejected", "reason", "r", "parking", "p", "parkedAt", "t")
}

// 4. claims and locators
var likesBreakages = map[string]breakage{
	"nothing": {do: func(m moment) moment { return m }},
	"a lost claim": {do: row("claims/order-list/ORDER#a/BY-ID", "claims", "sources", set("CUSTOMER#1/ORDER#a")), want: []string{
		`state claims/order-list/ORDER#a/BY-ID claims sources: want SS{"CUSTOMER#1/ORDER#a", "CUSTOMER#2/ORDER#a"}, ` +
			`got SS{"CUSTOMER#1/ORDER#a"} (rule order-list)`}},
	"lost claims": {do: gone("claims/order-list/ORDER#a/BY-ID", "claims"), want: []string{
		"state claims/order-list/ORDER#a/BY-ID claims: want an item, got none (rule order-list)"}},
	"a claim that nobody asks for": {do: row("claims/order-list/ORDER#b/BY-ID", "claims", "sources", set("CUSTOMER#2/ORDER#b")),
		want: []string{
			"state claims/order-list/ORDER#b/BY-ID claims: want no item, got one (rule order-list)"}},
	"claims of a rule that is none": {do: row("claims/like-count/ORDER#b/BY-ID", "claims", "changes", 1), want: []string{
		"state claims/like-count/ORDER#b/BY-ID claims: want no item, got one"}},
	"an item too many in a locator": {do: row("locator/Post/p1", "locator", "items",
		set("USER#ada/POST#p1", "USER#ben/POST#p1", "USER#eve/POST#p1")), want: []string{
		"state locator/Post/p1 locator items: want "}},
	"a lost locator": {do: gone("locator/Post/p1", "locator"), want: []string{
		"state locator/Post/p1 locator: want an item, got none"}},
	"a locator of a value that nothing has": {do: row("locator/Post/p2", "locator", "items", set("USER#ben/POST#p2")), want: []string{
		"state locator/Post/p2 locator: want no item, got one"}},
	"a contested mirror item that is not listed": {do: gone("parked", "contested:order-list/ORDER#a/BY-ID"), want: []string{
		"state parked contested:order-list/ORDER#a/BY-ID: want an item, got none (rule order-list)"}},
	"a contested value that is not listed": {do: gone("parked", "contested:@Post/p1"), want: []string{
		"state parked contested:@Post/p1: want an item, got none"}},
	"a contested value that is listed under another code": {do: row("parked", "contested:@Post/p1", "code", "item.contested"),
		want: []string{
			"state parked contested:@Post/p1 code: want "}},
	"a listed mirror item with one source": {do: row("parked", "contested:order-list/ORDER#b/BY-ID", "id",
		"contested:order-list/ORDER#b/BY-ID", "rule", "order-list",
		"item", "ORDER#b/BY-ID", "code", "item.contested", "reason", "r", "parking", "p", "parkedAt", "t"), want: []string{
		"state parked contested:order-list/ORDER#b/BY-ID: want no item, got one"}},
	"claims that do not know that they are listed": {do: row("claims/order-list/ORDER#a/BY-ID", "claims", "listed", nil), want: []string{
		"state claims/order-list/ORDER#a/BY-ID claims listed: want true, got nothing"}},
	"a locator of an entity that nobody finds so": {do: row("locator/Order/a", "locator", "changes", 1), want: []string{
		"state locator/Order/a locator: want no item, got one"}},
	"an entry without its unique value": {do: row("i/USER#ada/POST#p1", "e", "e", effects(), "ttl", nil), want: []string{
		`state i/USER#ada/POST#p1 e e: want SS{"@Post @p1"}, got nothing`}},
	"a reference of a rule that copies nothing": {do: row("ref/order-list/USER#ada/POST#p1", "USER#ada/LIKE#p1", "a", "0-"),
		want: []string{
			"state ref/order-list/USER#ada/POST#p1 USER#ada/LIKE#p1: want no item"}},
}

var numbersBreakages = map[string]breakage{
	"nothing": {do: func(m moment) moment { return m }},
	"a lost claim under a number key": {do: row("claims/wing/WING#1/1", "claims", "sources", set("ROOM#1/1")), want: []string{
		`state claims/wing/WING#1/1 claims sources: want SS{"ROOM#01/1", "ROOM#1/1"}, got SS{"ROOM#1/1"} (rule wing)`}},
	"a lost reference under a number key": {do: gone("ref/tag-owner/USER#1/1", "TAG#a/1"), want: []string{
		"state ref/tag-owner/USER#1/1 TAG#a/1: want an item, got none (rule tag-owner)"}},
}

// Keys that are too long for DynamoDB, and suffixes.
var longBreakages = map[string]breakage{
	"nothing": {do: func(m moment) moment { return m }},
	"a value that is spread over suffixes": {do: func(m moment) moment {
		return m.row("sum/"+RuleID("size")+"/OWNER#o1/1", "a", "value", 1).row("sum/"+RuleID("size")+"/OWNER#o1/0", "a", "value",
			change.Number("0.5"),
			"members", 0, "ops", 1)
	}},
	"a suffix too much": {do: row("sum/"+RuleID("size")+"/OWNER#o1/0", "a", "value", change.Number("0.5"), "members", 1, "ops", 1),
		want: []string{
			"state sum/" + RuleID("size") + "/OWNER#o1 members: want 1, got 2 (rule size)",
			"state sum/" + RuleID("size") + "/OWNER#o1 value: want 1.5, got 2 (rule size)"}},
	"wrong counts of long groups": {do: func(m moment) moment { return m.eachCut("sum/"+RuleID("docs")+"/", "value", change.Number("7")) },
		want: []string{
			"state sum/" + RuleID("docs") + "/OWNER#%25", "state sum/" + RuleID("docs") + "/OWNER#%25"}},
	"long entries that lost their effects": {do: func(m moment) moment { return m.eachCut("i/", "e", effects()) }, want: []string{
		"state i/DOC#%25"}},
	"long references that name another child": {do: func(m moment) moment { return m.eachCut("ref/"+RuleID("owner-name"), "child", nil) },
		want: []string{
			"state ref/" + RuleID("owner-name") + "/OWNER#%25"}},
}

// eachCut changes an attribute of every row whose key begins so and is cut.
func (m moment) eachCut(prefix, attribute string, v any) moment {
	for _, r := range m.state {
		if key := r["pk"].Text(); strings.HasPrefix(key, prefix) && cutForm.MatchString(key) {
			m = m.row(key, r["sk"].Text(), attribute, v)
		}
	}
	return m
}

func TestEveryBreakageIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		moment    moment
		breakages map[string]breakage
	}{
		"groups":  {groupsMoment(t).spelled(), groupsBreakages},
		"likes":   {likesMoment(t).spelled(), likesBreakages},
		"numbers": {numbersMoment(t).spelled(), numbersBreakages},
		"long":    {longMoment(t), longBreakages},
	} {
		for what, b := range c.breakages {
			t.Run(name+"/"+what, func(t *testing.T) {
				var got []string
				for i, d := range b.do(c.moment).audit(b.except...) {
					line := d.String()
					if i < len(b.want) && strings.HasPrefix(line, b.want[i]) {
						line = b.want[i]
					}
					got = append(got, line)
				}
				if diff := cmp.Diff(b.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
