package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/explain"
	"github.com/dynamill/dynamill/internal/replay/archive"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/rules"
)

// archivedRecords reads an archive's plain files as `dynamill explain` reads records, but
// for the line that a killed process left torn, and takes each record once.
func archivedRecords(t *testing.T, dir string) []change.Record {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	records := map[change.Position]change.Record{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			read, err := explain.Decode(lines.Bytes(), rules.Table{PartitionKey: "pk", SortKey: "sk"})
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			records[read[0].Position] = read[0]
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return slices.SortedFunc(maps.Values(records), func(a, b change.Record) int { return a.Position.Compare(b.Position) })
}

// TestAnArchiveHoldsEveryRecordThoughItsWriterIsKilled applies an archive's images one after
// the other: that must come to the table as it is, or a record is missing or was written wrong.
func TestAnArchiveHoldsEveryRecordThoughItsWriterIsKilled(t *testing.T) {
	t.Parallel()
	w := newLocalWorld(t, types.StreamViewTypeNewAndOldImages)
	dir := filepath.Join(t.TempDir(), "archive")
	w.put(community()...)
	for round := range 3 {
		cmd, _, stderr := w.command("run", "--archive", dir, "--worker", "archivist")
		w.must(cmd.Start())
		for i := range 120 {
			w.put(item(fmt.Sprintf("USER#%d", i), "PROFILE", "name", fmt.Sprintf("in round %d: <ü>", round), "avatar", strings.Repeat("x", i)))
		}
		w.delete("USER#123", "PROFILE")
		eventually(t, "the round is archived in part", func() bool {
			return slices.ContainsFunc(archivedRecords(t, dir), func(r change.Record) bool {
				return r.New != nil && strings.HasPrefix(r.New.Lookup("name").Text(), fmt.Sprintf("in round %d", round))
			})
		})
		w.must(cmd.Process.Kill())
		if err := cmd.Wait(); err == nil {
			t.Fatalf("it ended before it was killed:\n%s", stderr)
		}
	}
	w.drain("--archive", dir, "--worker", "archivist")
	w.drain("--archive", dir, "--worker", "archivist") // reads what the first one wrote last

	items := map[string]change.Item{}
	for _, record := range archivedRecords(t, dir) {
		place := record.Key.Partition + " " + record.Key.Sort
		if delete(items, place); record.New != nil {
			items[place] = maps.Collect(record.New.All())
		}
	}
	if diff := cmp.Diff(w.items(), items); diff != "" {
		t.Errorf("the table, and what the archive comes to (-want +got):\n%s", diff)
	}

	source, err := sources.OpenArchive(t.Context(), sources.FilesConfig{Place: dir, Table: w.table,
		Keys: sources.KeyNames{Partition: "pk", Sort: "sk"}})
	w.must(err)
	defer source.Close()
	pieces, err := source.Pieces(t.Context())
	w.must(err)
	missing := w.items()
	for _, piece := range pieces {
		for cursor, last := "", false; !last; {
			page, err := source.Read(t.Context(), piece, cursor)
			w.must(err)
			for _, key := range page.Keys {
				delete(missing, key.Partition+" "+key.Sort)
			}
			cursor, last = page.Next, page.Last
		}
	}
	if len(missing) > 0 {
		t.Errorf("items whose keys no piece of the archive gives: %v", slices.Collect(maps.Keys(missing)))
	}
}

func TestAnArchiveThatCannotBeWrittenEndsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, types.StreamViewTypeNewAndOldImages)
	file := filepath.Join(t.TempDir(), "file")
	w.must(os.WriteFile(file, nil, 0o600))
	if code, _, stderr := w.call("run", "--drain", "--archive", file); code != ending.ExitEnvironment ||
		!strings.Contains(stderr, "--archive "+file+" cannot be used") {
		t.Errorf("exit code %d: %s", code, stderr)
	}

	dir := filepath.Join(t.TempDir(), "archive")
	cmd, _, stderr := w.command("run", "--archive", dir, "--worker", "archivist")
	w.must(cmd.Start())
	eventually(t, "the stream is read", func() bool {
		leases, err := w.scan(w.leaseTableName())
		return err == nil && len(leases) > 0
	})
	w.must(os.Remove(dir)) // which is empty, as the stream was
	w.put(community()...)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != ending.ExitEnvironment ||
		!strings.Contains(stderr.String(), "the archive in "+dir+" cannot be written") {
		t.Errorf("%v\n%s", err, stderr)
	}
	w.drain("--archive", dir, "--worker", "archivist")
	if records := archivedRecords(t, dir); len(records) < len(community()) {
		t.Errorf("%d records are archived once it can be written again", len(records))
	}
}

func TestEveryValueIsArchivedAsExplainReadsIt(t *testing.T) {
	t.Parallel()
	const label = "2026-11-21T00:00:00.000"
	image := change.Item{
		"pk": change.String("USER#1"), "sk": change.Number("-5"), "s": change.String("<\"ü\u2028\n>"), "empty": change.String(""),
		"n": change.Number("0.00000000000000000000000000000000000001"), "b": change.Binary([]byte{0, 255}),
		"t": change.Bool(true), "f": change.Bool(false), "z": change.Null(), "none": change.List(nil), "no": change.Map(nil),
		"l":  change.List([]change.Value{change.String("a"), change.Map(map[string]change.Value{"x.y": change.Number("1")})}),
		"ss": change.Set(change.KindStringSet, []string{"b", "a"}), "ns": change.Set(change.KindNumberSet, []string{"1", "2"}),
		"bs": change.Set(change.KindBinarySet, []string{"\x01", "\xff"}),
	}
	key := change.Key{Partition: "USER#1", Sort: "-5"}
	records := []change.Record{{Key: key, New: image}, {Key: key, Old: image, New: change.Item{"pk": image["pk"], "sk": image["sk"]}},
		{Key: key, Old: image, Expired: true}}
	for i := range records {
		var err error
		if records[i].Position, err = change.NewPosition(label, fmt.Sprint("90000000000000000000", i)); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	writer, err := archive.Open(archive.Config{Dir: dir, StreamARN: "arn:aws:dynamodb:eu-west-1:1:table/app/stream/" + label,
		PartitionKey: "pk", SortKey: "sk"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(writer.Write(records), writer.Close()); err != nil {
		t.Fatal(err)
	}
	read := archivedRecords(t, dir)
	if len(read) != len(records) {
		t.Fatalf("%d records were written and %d read", len(records), len(read))
	}
	same := func(a, b change.Image) bool {
		return a == nil && b == nil || a != nil && b != nil && maps.EqualFunc(maps.Collect(a.All()), maps.Collect(b.All()), change.Value.Equal)
	}
	for i, want := range records {
		got := read[i]
		if got.Key != want.Key || got.Position != want.Position || got.Expired != want.Expired || !same(got.Old, want.Old) ||
			!same(got.New, want.New) {
			t.Errorf("written %+v\nread    %+v", want, got)
		}
	}
}
