package oracle

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
	"github.com/dynamill/dynamill/internal/projections"
	"github.com/dynamill/dynamill/internal/story"
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
		"NOTE#1 METADATA userId=ada", "NOTE#1 METADATA userId=ben text=hm", "NOTE#2 METADATA userId=a#b", "NOTE#2 METADATA",
		"NOTE#2 METADATA userId=eve",
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
	"shop": {shopRules, []string{
		"USER#u1 PROFILE EntityType=User", "USER#u2 PROFILE EntityType=User name=Two", "USER#u2 PROFILE EntityType=Robot",
		"USER#u1 POST#p1 EntityType=Post title=A slug=s1", "USER#u1 POST#p1 EntityType=Post title=B",
		"USER#u2 POST#p1 EntityType=Post title=C slug=s1",
		"USER#u2 POST#p2 EntityType=Post title=A slug=s2", "USER#u2 POST#p2 EntityType=Post slug[]", "USER#u2 POST#p2 EntityType=Draft slug=s2",
		"USER#u1 LIKE#l1 EntityType=Like target=s1", "USER#u1 LIKE#l1 EntityType=Like target=s2", "USER#u2 LIKE#l2 EntityType=Like target=s1",
		"USER#u2 LIKE#l3 EntityType=Like target[]", "POST#p1 METADATA EntityType=PostById views:3",
		"POST#p3 METADATA EntityType=PostById title=own",
	}},
	"numbers": {numbersRules, []string{
		"USER#1 1 name=One", "USER#1 1 name=Uno", "USER#2 1 name=Two", "USER#1 7 a=b",
		"ROOM#01 1 seats:4 n2=01", "ROOM#1 1 seats:5", "ROOM#001 1 seats:6", "ROOM#2 1 seats:7", "TAG#a 1 owner=1", "TAG#b 2 owner:2",
		"TAG#b 3 owner=2",
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

// shopRules tell entities by a type attribute, which mirror items get written,
// find a target by an attribute, and have sources that share a mirror item.
const shopRules = `
version: 1
table: { keys: [PK, SK], type: EntityType }
entities:
  Post:     { key: { PK: "USER#${authorId}", SK: "POST#${postId}" }, unique: slug }
  Like:     { key: { PK: "USER#${userId}",   SK: "LIKE#${likeId}" } }
  User:     { key: { PK: "USER#${userId}",   SK: "PROFILE" } }
  PostById: { key: { PK: "POST#${postId}",   SK: "METADATA" } }
rules:
  like-count: { count: Like, as: Post.LikeCount, by: { slug: target } }
  post-count: { count: Post, as: User.PostCount, by: { userId: authorId } }
  by-id:      { mirror: Post, as: PostById, attributes: [title] }
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
	found = append(Drift(w.set, w.items()), Audit(w.set, w.items(), w.state(), time.Now(), except...)...)
	return append(found, Foreign(w.set, slices.Collect(maps.Values(w.base)), w.items())...)
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

// TestTheStateOfExamplesIsRight plays the examples' stories.
func TestTheStateOfExamplesIsRight(t *testing.T) {
	for _, name := range story.Names() {
		t.Run(name, func(t *testing.T) {
			ex, err := story.Load(name, projections.Kinds)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, string(ex.Rules))
				for _, it := range ex.Items {
					w.put(it)
				}
				w.drain()
				for _, step := range ex.Steps {
					for _, write := range step.Writes {
						if err := write.Apply(t.Context(), writer{w}); err != nil {
							t.Fatal(err)
						}
					}
					w.drain()
					for _, difference := range w.check() {
						t.Errorf("%s: %s", step.Title, difference)
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

// TestWhatDynamoDBRefusedMayStay has a mirror item without room for what its
// source holds, and a sum that no number holds, of which that can be told from the items.
func TestWhatDynamoDBRefusedMayStay(t *testing.T) {
	nines := strings.Repeat("9", decimal.DigitsMax)
	for name, c := range map[string]struct {
		do     func(w *world)
		except []Exception
	}{
		"no room": {func(w *world) {
			small, large := w.item("GROUP#dev USER#ada"), w.item("USER#ada GROUP#dev role=admin points:5")
			small["fill"], large["role"] = change.String(strings.Repeat("x", 20_000)), change.String(strings.Repeat("x", 390_000))
			w.put(small)
			w.drain()
			w.put(large)
		}, []Exception{RejectedWrites}},
		"no number": {func(w *world) {
			w.write("USER#ada GROUP#dev points:"+nines, "USER#ben GROUP#dev points:"+nines, "USER#eve GROUP#dev points:-1")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, groupsRules)
				c.do(w)
				w.drain()
				if len(w.moment().audit()) == 0 && len(c.except) > 0 {
					t.Error("nothing was refused")
				}
				for _, difference := range w.moment().audit(c.except...) {
					t.Error(difference)
				}
			})
		})
	}
}

// TestAPositionExpiresUnderAChild shows what ExpiringPositions is for.
func TestAPositionExpiresUnderAChild(t *testing.T) {
	m := after(t, groupsRules, "USER#ada PROFILE name=Ada", "", "- USER#ada PROFILE", "", "NOTE#1 METADATA userId=ada")
	want := []string{"parent/" + RuleID("note-author") + "/USER#ada/PROFILE"}
	var got []string
	for _, d := range m.audit() {
		got = append(got, d.Key.Partition)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := m.audit(ExpiringPositions); len(got) > 0 {
		t.Error(got)
	}
}
