// Package examples holds small, whole designs, each with its rule file, its
// items and a story of what an application does to them. The demonstration
// plays them, the test suite checks them, and their READMEs explain them.
//
// Each folder is one example:
//
//	dynamill.yaml  the rule file
//	items.json     the items before dynamill first runs, as `aws dynamodb batch-write-item` reads them
//	story.yaml     what the application does then, step by step
//	want.json      the items at the end but for stamps and times to live, for the tests
//
// It imports no other room; internal/story reads the files.
package examples

import "embed"

// Files are the files of all examples, except want.json.
//
//go:embed */dynamill.yaml */items.json */story.yaml
var Files embed.FS
