package projections

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/dynamill/dynamill/change"
)

const socialRules = `
version: 1
table: { keys: [pk, sk] }
entities:
  User:       { key: { pk: "USER#${userId}",   sk: "PROFILE" } }
  Post:       { key: { pk: "POST#${postId}",   sk: "METADATA" } }
  Comment:    { key: { pk: "POST#${postId}",   sk: "COMMENT#${commentId}" } }
  Group:      { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Membership: { key: { pk: "USER#${userId}",   sk: "GROUP#${groupId}" } }
  Member:     { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  comment-author: { copy: [name as userName, avatar as userAvatar], from: User, to: Comment, by: userId, if_missing: { userName: "[deleted]" } }
  member-list:    { mirror: Membership, as: Member, attributes: [role, joinedAt] }
  member-name:    { copy: name as userName,  from: User,  to: Member }
  group-name:     { copy: name as groupName, from: Group, to: Membership }
  group-title:    { copy: name as groupTitle, from: Group, to: Member }
  member-count:   { count: Membership, as: Group.memberCount, where: role != "banned", write_shards: 3 }
  admin-count:    { count: Member, as: Group.adminCount, where: role == "admin" }
  comment-count:  { count: Comment, as: Post.commentCount }
  comment-score:  { sum: score, of: Comment, as: Post.score }
`

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

// oddRules have no sort key, tell entities of one key apart by match, and find a target by a
// unique value that may be a number.
const oddRules = `
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
  notes:       { count: Note, as: Owner.notes, by: ownerId }
  size:        { sum: size, of: Doc, as: Owner.size, by: ownerId, write_shards: 2 }
  by-code:     { mirror: Doc, as: ByCode, by: code, attributes: [title, ownerId] }
  code-owner:  { copy: name as ownerName, from: Owner, to: ByCode, by: ownerId }
  codes:       { count: ByCode, as: Owner.codes, by: ownerId }
  in-folder:   { count: Doc, as: Folder.docs, by: { slug: folder } }
  notes-in:    { count: Note, as: Folder.notes, by: { slug: folder } }
  folder-docs: { copy: docs as folderDocs, from: Folder, to: Note, by: { folderId: folderId } }
`

func s(text string) change.Value { return change.String(text) }

// app is the application: it does random things to a small population.
type app struct {
	*world
	r     *rand.Rand
	stale map[change.Key]change.Item
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (a *app) socialItem() change.Item {
	user, group, post := pick(a.r, "u1", "u2"), pick(a.r, "g1", "g2"), pick(a.r, "p1", "p2")
	switch a.r.IntN(6) {
	case 0:
		it := change.Item{"pk": s("USER#" + user), "sk": s("PROFILE"), "name": s(pick(a.r, "Ann", "Bob", "Cid"))}
		if a.r.IntN(2) == 0 {
			it["avatar"] = s(pick(a.r, "a.png", "b.png"))
		}
		return it
	case 1:
		return change.Item{"pk": s("POST#" + post), "sk": s("METADATA"), "title": s(strconv.Itoa(a.r.IntN(3)))}
	case 2:
		return change.Item{"pk": s("GROUP#" + group), "sk": s("METADATA"), "name": s(pick(a.r, "Dev", "Ops", "Lab"))}
	case 3:
		it := change.Item{"pk": s("POST#" + post), "sk": s("COMMENT#c" + strconv.Itoa(a.r.IntN(2)))}
		switch a.r.IntN(6) {
		case 0:
		case 1:
			it["userId"] = s("x#y")
		default:
			it["userId"] = s(user)
		}
		switch a.r.IntN(4) {
		case 0:
		case 1:
			it["score"] = s("high")
		default:
			it["score"] = change.Number(pick(a.r, "0.1", "0.2", "5"))
		}
		return it
	default:
		return change.Item{"pk": s("USER#" + user), "sk": s("GROUP#" + group), "role": s(pick(a.r, "admin", "member", "banned"))}
	}
}

func (a *app) shopItem() change.Item {
	user := pick(a.r, "u1", "u2")
	switch a.r.IntN(4) {
	case 0:
		return change.Item{"PK": s("USER#" + user), "SK": s("PROFILE"), "EntityType": s("User")}
	case 1:
		it := change.Item{"PK": s("USER#" + user), "SK": s("POST#" + pick(a.r, "p1", "p2")), "EntityType": s("Post"), "title": s(pick(a.r, "A", "B", "C"))}
		if a.r.IntN(5) > 0 {
			it["slug"] = s(pick(a.r, "s1", "s2"))
		}
		return it
	default:
		return change.Item{"PK": s("USER#" + user), "SK": s("LIKE#" + pick(a.r, "l1", "l2", "l3")), "EntityType": s("Like"), "target": s(pick(a.r, "s1", "s2"))}
	}
}

func (a *app) oddItem() change.Item {
	owner := pick(a.r, "o1", "o2")
	switch a.r.IntN(6) {
	case 0:
		return change.Item{"pk": s("OWNER#" + owner), "name": s(pick(a.r, "Ann", "Bob", "Cid"))}
	case 1:
		it := change.Item{"pk": s("FOLDER#" + pick(a.r, "f1", "f2"))}
		switch a.r.IntN(4) {
		case 0:
		case 1:
			it["slug"] = change.Number("5")
		default:
			it["slug"] = s(pick(a.r, "s1", "5"))
		}
		return it
	default:
		it := change.Item{"pk": s("DOC#" + pick(a.r, "d1", "d2", "d3")), "kind": s(pick(a.r, "doc", "doc", "note", "other")), "title": s(pick(a.r, "A", "B"))}
		for _, one := range []struct {
			name  string
			value change.Value
		}{
			{"ownerId", s(owner)}, {"code", s(pick(a.r, "c1", "c2"))}, {"folder", s(pick(a.r, "s1", "5"))},
			{"folderId", s(pick(a.r, "f1", "f2"))}, {"size", change.Number(pick(a.r, "1", "2.5"))},
		} {
			if a.r.IntN(5) > 0 {
				it[one.name] = one.value
			}
		}
		return it
	}
}

// act does one thing: puts an item whole, changes one attribute, deletes, or
// puts back an item as it once was, stamps included.
func (a *app) act(random func() change.Item) {
	it := random()
	key := change.Key{Partition: it[a.set.Table.PartitionKey].Text(), Sort: it[a.set.Table.SortKey].Text()}
	switch x := a.r.IntN(20); {
	case x < 8:
		a.put(it)
	case x < 11:
		if was := a.get(key); was != nil {
			a.update(key, it)
		}
	case x < 14:
		a.delete(key)
	case x < 16:
		if all := a.items(); len(all) > 0 { // anything, derived items too
			it := all[a.r.IntN(len(all))]
			a.stale[change.Key{Partition: it[a.set.Table.PartitionKey].Text(), Sort: it[a.set.Table.SortKey].Text()}] = it
		}
	case x < 18:
		if len(a.stale) > 0 {
			keys := slices.SortedFunc(maps.Keys(a.stale), func(k, l change.Key) int { return cmp.Compare(k.String(), l.String()) })
			a.put(a.stale[pick(a.r, keys...)])
		}
	default:
		a.vandalize()
	}
}

// vandalize changes or deletes what the engine derived.
func (a *app) vandalize() {
	all := a.items()
	if len(all) == 0 {
		return
	}
	it := all[a.r.IntN(len(all))]
	key := change.Key{Partition: it[a.set.Table.PartitionKey].Text(), Sort: it[a.set.Table.SortKey].Text()}
	if a.r.IntN(4) == 0 {
		a.delete(key)
		return
	}
	names := slices.Sorted(maps.Keys(it))
	a.r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		if name != a.set.Table.PartitionKey && name != a.set.Table.SortKey && name != "EntityType" && a.r.IntN(2) == 0 {
			if a.r.IntN(2) == 0 {
				a.update(key, change.Item{name: {}})
			} else if it[name].Kind() == change.KindNumber {
				a.update(key, change.Item{name: change.Number("77")})
			}
			return
		}
	}
}
