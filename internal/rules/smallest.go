package rules

// smallestEntities are those of the smallest rule file, which problems of files without content show.
const smallestEntities = `entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }`

func (l kindList) smallestRules() string { return "rules:\n  " + l.example() }

func (l kindList) smallestFile() string {
	return "version: 1\ntable: { keys: [pk, sk] }\n" + smallestEntities + "\n" + l.smallestRules()
}
