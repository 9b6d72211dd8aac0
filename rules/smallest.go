package rules

// The smallest rule file, which problems of files without content show.
const (
	smallestEntities = `entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }`
	smallestRules = `rules:
  comment-count: { count: Comment, as: Post.commentCount }`
	smallestFile = `version: 1
table: { keys: [pk, sk] }
` + smallestEntities + "\n" + smallestRules

	smallestFileHint = "this is a whole rule file:"
)
