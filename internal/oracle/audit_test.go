package oracle

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynamill/dynamill/change"
)

// design is a rule file, with items that an application of it writes.
type design struct {
	rules string
	lines []string
}

var designs = map[string]design{
	"groups": {groupsRules, []string{
		"USER#ada PROFILE name=Ada", "USER#ada PROFILE name=Adele", "USER#ben PROFILE name=Ben", "USER#ben PROFILE",
		"GROUP#dev METADATA name=Developers", "GROUP#dev METADATA name=Dev", "GROUP#ops METADATA name=Operations",
		"USER#ada GROUP#dev role=admin points:5", "USER#ada GROUP#dev role=banned points:0.1", "USER#ada GROUP#ops role=member points=many",
		"USER#ben GROUP#dev role=member points:2", "USER#ben GROUP#ops role=banned", "USER#ben GROUP#ops points:0",
		"GROUP#dev USER#eve role=guest points:3 seat=window", "GROUP#dev USER#ada role=guest seat=door hat=red",
		"NOTE#1 METADATA userId=ada", "NOTE#1 METADATA userId=ben text=hm", "NOTE#2 METADATA userId=a#b", "NOTE#2 METADATA", "NOTE#2 METADATA userId=eve",
		"OTHER#1 THING memberCount:9",
	}},
	"likes": {likesRules, []string{
		"USER#ada POST#p1 title=A", "USER#ben POST#p1 title=B", "USER#ben POST#p2", "USER#ada LIKE#p1", "USER#ben LIKE#p1", "USER#eve LIKE#p2",
		"CUSTOMER#1 ORDER#a total:10", "CUSTOMER#1 ORDER#a total:12", "CUSTOMER#2 ORDER#a total:5", "CUSTOMER#2 ORDER#b total:5",
		"ORDER#a BY-ID total:1 note=x", "ORDER#c BY-ID total:1",
	}},
	"docs": {docsRules, []string{
		"OWNER#o1 name=Ann", "OWNER#o1 name=Bob", "OWNER#o2 name=Cid", "OWNER#o2",
		"FOLDER#f1 slug=s1", "FOLDER#f1 slug:5", "FOLDER#f2 slug=5", "FOLDER#f2 slug=s1", "FOLDER#f2", "FOLDER#f2 slug[]",
		"DOC#d1 kind=doc ownerId=o1 code=c1 folder=s1 size:1 title=A", "DOC#d1 kind=doc ownerId=o2 code=c2 folder=5 size:2.5",
		"DOC#d2 kind=doc ownerId=o1 code=c1 folder=5 size=big title=B", "DOC#d2 kind=note ownerId=o1 folder=s1 folderId=f1",
		"DOC#d3 kind=note ownerId=o2 folder=5 folderId=f2", "DOC#d3 kind=other ownerId=o2", "DOC#d3 kind=doc code=x#y folder=a#b ownerId=o1",
		"CODE#c1 extra=1", "CODE#c9 title=own",
	}},
	"numbers": {numbersRules, []string{
		"USER#1 1 name=One", "USER#1 1 name=Uno", "USER#2 1 name=Two", "USER#1 7 a=b",
		"ROOM#01 1 seats:4 n2=01", "ROOM#1 1 seats:5", "ROOM#001 1 seats:6", "ROOM#2 1 seats:7", "TAG#a 1 owner=1", "TAG#b 2 owner:2", "TAG#b 3 owner=2",
	}},
}

// docsRules have no sort key, tell entities of one key apart by match, and find
// a target by a unique value that may be a number.
const docsRules = `
version: 1
table: { keys: [pk] }
entities:
  Doc:    { key: { pk: "DOC#${docId}" }, match: { kind: doc } }
  Note:   { key: { pk: "DOC#${docId}" }, match: { kind: note } }
  Owner:  { key: { pk: "OWNER#${ownerId}" } }
  ByCode: { key: { pk: "CODE#${code}" } }
  Folder: { key: { pk: "FOLDER#${folderId}" }, unique: slug }
rules:
  owner-name:  { copy: name as ownerName, from: Owner, to: Doc, by: ownerId, if_missing: { ownerName: "?" } }
  author-name: { copy: name as authorName, from: Owner, to: Note, by: ownerId }
  docs:        { count: Doc, as: Owner.docs, by: ownerId }
  size:        { sum: size, of: Doc, as: Owner.size, by: ownerId, write_shards: 2 }
  by-code:     { mirror: Doc, as: ByCode, by: code, attributes: [title, ownerId] }
  code-owner:  { copy: name as ownerName, from: Owner, to: ByCode, by: ownerId }
  codes:       { count: ByCode, as: Owner.codes, by: ownerId }
  in-folder:   { count: Doc, as: Folder.docs, by: { slug: folder } }
  notes-in:    { count: Note, as: Folder.notes, by: { slug: folder } }
  folder-docs: { copy: docs as folderDocs, from: Folder, to: Note, by: folderId }
`

// numbersRules have a number for a sort key, which a text may write in several ways.
const numbersRules = `
version: 1
table: { keys: [pk, n] }
entities:
  User: { key: { pk: "USER#${userId}", n: "${page}" } }
  Room: { key: { pk: "ROOM#${room}",   n: "${page}" } }
  Wing: { key: { pk: "WING#${page}",   n: "${room}" } }
  Tag:  { key: { pk: "TAG#${tag}",     n: "${page}" } }
rules:
  wing:      { mirror: Room, as: Wing, attributes: [seats] }
  tag-owner: { copy: name as ownerName, from: User, to: Tag, by: { userId: owner } }
  tags:      { count: Tag, as: User.tags, by: { userId: owner } }
  rooms:     { count: Wing, as: User.rooms, by: { userId: page, page: page } }
`

// check reports what is wrong in a quiet world.
func (w *world) check(except ...Exception) (found []Difference) {
	w.t.Helper()
	found = Drift(w.set, w.items())
	return append(found, Audit(w.set, w.items(), w.state(), time.Now(), except...)...)
}

// TestTheEnginesOwnStateIsRight lets applications do random things and the
// engine follow.
func TestTheEnginesOwnStateIsRight(t *testing.T) {
	for name, d := range designs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for seed := range uint64(40) {
					w := newWorld(t, d.rules)
					r := rand.New(rand.NewPCG(seed, 1))
					for range 6 {
						for range 8 {
							w.act(r, d.lines)
						}
						w.drain()
						for _, difference := range w.check(ExpiringPositions) {
							t.Errorf("seed %d: %s", seed, difference)
						}
						if t.Failed() {
							t.FailNow()
						}
					}
				}
			})
		})
	}
}

// act does one thing: puts an item, deletes one, puts one back as it is, or
// without or with other derived attributes.
func (w *world) act(r *rand.Rand, lines []string) {
	w.t.Helper()
	all := w.items()
	if len(all) == 0 || r.IntN(2) == 0 {
		w.put(w.item(lines[r.IntN(len(lines))]))
		return
	}
	it := all[r.IntN(len(all))]
	switch r.IntN(4) {
	case 0, 1:
		w.delete(it)
	case 2:
		w.put(it)
	default:
		for _, name := range slices.Sorted(maps.Keys(it)) {
			if v := it[name]; strings.HasPrefix(name, stampPrefix) || v.Kind() == change.KindNumber && name != w.set.Table.SortKey {
				delete(it, name)
				break
			}
		}
		w.put(it)
	}
}
