// Package mutants holds the guards: the precautions of the engine and of the
// reader against crashes, repetition, reordering, late workers and other writers.
// For each guard it says how the code would go wrong without it. The proof turns
// off one guard after the other and expects that some history then breaks a
// promise. A guard that can be turned off unnoticed is not proved to be needed.
//
// The code that ships knows nothing of this. `make prove` writes a copy of each
// guarded file, with a switch for each of its guards, into a temporary folder
// (Write), and tells the go command to compile the copies instead (go help
// build: -overlay). So one build holds all guards, and the proof turns them off
// at run time.
//
// The guards stand in the .patch files of this folder, grouped by what they
// protect. Each guard begins with its name and one sentence. Its changes follow:
//
//	guard Frontier: a checkpoint never passes a record that is not done
//	@@ internal/stream/shardread/frontier.go
//	-	for _, m := range f.pending[:done] {
//	+	reached := done
//	+	if switches.Off("Frontier") {
//	+		reached = len(f.pending)
//	+	}
//	+	for _, m := range f.pending[:reached] {
//
// As in a diff, a line begins with "-" if it goes, with "+" if it comes, and with
// a blank if it stays. The lines that go or stay must occur exactly once in the
// file; lines that stay make them unique. Lines that begin with "#" are comments.
// The copies import package switches by themselves; a change can name other
// imports as it changes any line.
//
// The package imports nothing of the module. Nothing but tests and
// internal/proof imports it.
package mutants
