package oracle

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/rules"
)

// groupsRules has every kind of rule but those by unique value, and a chain:
// the mirror's items are named by a copy and counted.
const groupsRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
  Note:       { key: { pk: "NOTE#${noteId}",   sk: "METADATA" } }
rules:
  member-list:  { mirror: Membership, as: Member, attributes: [role, points] }
  member-name:  { copy: name as userName, from: User, to: Member }
  group-name:   { copy: name as groupName, from: Group, to: Membership }
  member-count: { count: Member, as: Group.memberCount, where: role != "banned" }
  member-sum:   { sum: points, of: Member, as: Group.points }
  note-author:  { copy: name as author, from: User, to: Note, by: userId, if_missing: { author: "[deleted]" } }
`

// likesRules find a post by its id alone, and give one order item to several sources.
const likesRules = `
version: 1
table: { keys: [PK, SK] }
entities:
  Post:  { key: { PK: "USER#${authorId}",     SK: "POST#${postId}" }, unique: postId }
  Like:  { key: { PK: "USER#${userId}",       SK: "LIKE#${postId}" } }
  Order: { key: { PK: "CUSTOMER#${customer}", SK: "ORDER#${orderId}" } }
  ById:  { key: { PK: "ORDER#${orderId}",     SK: "BY-ID" } }
rules:
  like-count: { count: Like, as: Post.likes, by: postId }
  order-list: { mirror: Order, as: ById, attributes: [total] }
`

func compile(t *testing.T, src string) *rules.Set {
	t.Helper()
	set, err := rules.Load("dynamill.yaml", []byte(src), projections.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// items is a table's items by "partition sort".
type items map[string]change.Item

// with returns a copy in which the item has the attributes, given as names and
// values in turn; a nil value removes one. Items that are not there are made.
func (is items) with(partition, sort string, attributes ...any) items {
	is = maps.Clone(is)
	item := maps.Clone(is[partition+" "+sort])
	if item == nil {
		partitionName, sortName := "pk", "sk"
		if is["upper"] != nil {
			partitionName, sortName = "PK", "SK"
		}
		item = change.Item{partitionName: change.String(partition), sortName: change.String(sort)}
	}
	for i := 0; i < len(attributes); i += 2 {
		name := attributes[i].(string)
		switch v := attributes[i+1].(type) {
		case nil:
			delete(item, name)
		case int:
			item[name] = change.Number(fmt.Sprint(v))
		case string:
			item[name] = change.String(v)
		case change.Value:
			item[name] = v
		}
	}
	is[partition+" "+sort] = item
	return is
}

func (is items) without(partition, sort string) items {
	is = maps.Clone(is)
	delete(is, partition+" "+sort)
	return is
}

func (is items) list() []change.Item {
	var list []change.Item
	for _, item := range is {
		if len(item) > 0 {
			list = append(list, item)
		}
	}
	return list
}

const stampText = "contexts0--digestof"

// madeAt is the mark of an item that the engine made under this key.
func madeAt(partition, sort string) change.Value {
	return change.String(change.Digest(change.String(change.Key{Partition: partition, Sort: sort}.String())))
}

// mirrored returns a copy in which the engine has made the item, with the attributes given.
func (is items) mirrored(partition, sort string, attributes ...any) items {
	return is.with(partition, sort, append(attributes, madeAttribute, madeAt(partition, sort))...)
}

// groups returns a table under groupsRules in which all is right.
func groups() items {
	return items{}.
		with("USER#ada", "PROFILE", "name", "Ada").
		with("USER#ben", "PROFILE", "name", "Ben").
		with("GROUP#dev", "METADATA", "name", "Developers", "memberCount", 1, "points", 7).
		with("GROUP#ops", "METADATA", "name", "Operations", "memberCount", 0, "points", 0).
		with("USER#ada", "GROUP#dev", "role", "admin", "points", 5, "groupName", "Developers").
		with("USER#ben", "GROUP#dev", "role", "banned", "points", 2, "groupName", "Developers").
		mirrored("GROUP#dev", "USER#ada", "role", "admin", "points", 5, "userName", "Ada", "_dm_member-list", stampText, "_dm_member-name",
			stampText).
		mirrored("GROUP#dev", "USER#ben", "role", "banned", "points", 2, "userName", "Ben", "_dm_member-list", stampText, "_dm_member-name",
			stampText).
		with("NOTE#1", "METADATA", "userId", "ada", "author", "Ada").
		with("OTHER#1", "THING", "memberCount", 9)
}

// hidden are rules of which each total hides 0.
func hidden(src string) string {
	return strings.ReplaceAll(src, "as: Group.", "if_none: absent, as: Group.")
}

// viewsRules give each post a view of an entity that items of it are told by.
const viewsRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  Post: { key: { pk: "USER#${userId}", sk: "POST#${postId}" } }
  User: { key: { pk: "USER#${userId}", sk: "PROFILE" } }
  View: { key: { pk: "POST#${postId}", sk: "VIEW#${userId}" }, match: { kind: view } }
  Code: { key: { pk: "CODE#${code}",   sk: "POST" }, match: { kind: code } }
rules:
  views:   { mirror: Post, as: View, attributes: [title, place] }
  codes:   { mirror: Post, as: Code, by: code, attributes: [title] }
  viewed:  { count: View, as: User.views }
`

// views returns a table under viewsRules in which all is right: of the places of
// the first user's views, the engine has made one, and the application two items, of
// the target's entity and of another.
func views() items {
	return items{}.
		with("USER#1", "PROFILE", "views", 2).
		with("USER#1", "POST#a", "title", "A", "code", "c").
		with("USER#1", "POST#b", "title", "B", "code", "c").
		with("USER#1", "POST#c", "title", "C").
		mirrored("POST#a", "VIEW#1", "kind", "view", "title", "A", "_dm_views", stampText).
		with("POST#b", "VIEW#1", "kind", "view", "title", "B", "note", "own", "_dm_views", stampText).
		with("POST#c", "VIEW#1", "kind", "other", "title", "own", "place", 7).
		with("CODE#c", "POST", "title", "own")
}

// likes returns a table under likesRules in which all is right.
func likes() items {
	return items{"upper": change.Item{}}.
		with("USER#ada", "POST#p1", "likes", 2).
		with("USER#ada", "POST#p2", "likes", 0).
		with("USER#ada", "LIKE#p1").
		with("USER#ben", "LIKE#p1").
		with("CUSTOMER#1", "ORDER#a", "total", 10).
		mirrored("ORDER#a", "BY-ID", "total", 10, "_dm_order-list", stampText)
}

const daysRules = `version: 1
table: { keys: [pk, sk] }
entities:
  Day:    { key: { pk: "DAY#${day}", sk: "METADATA" } }
  Sample: { key: { pk: "DAY#${day}", sk: "SAMPLE#${time}" } }
rules:
  day-cpu: { average: cpu, of: Sample, as: Day.cpu }
`

// days is a day that shows an average, and two samples of 0 and 1.
func days(cpu string) items {
	return items{}.with("DAY#1", "METADATA", "cpu", change.Number(cpu)).
		with("DAY#1", "SAMPLE#1", "cpu", 0).with("DAY#1", "SAMPLE#2", "cpu", 1).with("DAY#1", "SAMPLE#9")
}
