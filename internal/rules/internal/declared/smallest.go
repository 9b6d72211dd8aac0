package declared

// smallestEntities are those of the smallest rule file, which problems of files without content show.
const smallestEntities = `entities:
  Post:    { key: { pk: "POST#${postId}", sk: "METADATA" } }
  Comment: { key: { pk: "POST#${postId}", sk: "COMMENT#${commentId}" } }`

func (l Kinds) smallestRules() string { return "rules:\n  " + l.example() }

// SmallestFile is an example of a rule file.
func (l Kinds) SmallestFile() string {
	return "version: 1\ntable: { keys: [pk, sk] }\n" + smallestEntities + "\n" + l.smallestRules()
}
