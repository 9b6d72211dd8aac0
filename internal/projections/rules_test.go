package projections

import "github.com/dynamill/dynamill/change"

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
