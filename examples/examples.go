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
// A step of a story has a title, what it says, and writes: put, update, delete. crash_after kills dynamill's process after that
// many of its writes. repeat_every: 3 has the stream deliver each third record twice. The names under by_hand, beside steps,
// are counts that a handler written by hand keeps, too, with a bare ADD for each record.
//
// It imports no other room; internal/story reads the files.
package examples

import "embed"

// Files are the files of all examples, except want.json.
//
//go:embed */dynamill.yaml */items.json */story.yaml
var Files embed.FS
