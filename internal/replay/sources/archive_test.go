package sources_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/archive"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/sim/exportsim"
)

const streamARN = exportsim.TableARN + "/stream/2026-11-21T00:00:00.000"

func streamRecord(t *testing.T, n int) change.Record {
	t.Helper()
	position, err := change.NewPosition("2026-11-21T00:00:00.000", fmt.Sprint(100+n))
	if err != nil {
		t.Fatal(err)
	}
	key := change.Key{Partition: fmt.Sprintf("USER#\"%d\"\n", n%700), Sort: fmt.Sprint(n)}
	image := change.Item{"pk": change.String(key.Partition), "sk": change.Number(key.Sort), "name": change.String("<ü>")}
	record := change.Record{Key: key, Position: position, Old: image, New: image, Created: time.Unix(1_700_000_000, 0)}
	switch n % 3 {
	case 0:
		record.Old = nil
	case 1:
		record.New = nil
	}
	return record
}

func streamRecords(t *testing.T, from, to int) (records []change.Record, keys []change.Key) {
	t.Helper()
	for n := from; n < to; n++ {
		records = append(records, streamRecord(t, n))
		keys = append(keys, records[len(records)-1].Key)
	}
	return records, keys
}

func newArchive(t *testing.T, config archive.Config) *archive.Writer {
	t.Helper()
	config.StreamARN, config.PartitionKey, config.SortKey = streamARN, "pk", "sk"
	writer, err := archive.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	return writer
}

func write(t *testing.T, w *archive.Writer, records []change.Record) {
	t.Helper()
	if err := w.Write(records); err != nil {
		t.Fatal(err)
	}
}

func openArchive(t *testing.T, dir string) *sources.Files {
	t.Helper()
	source, err := sources.OpenArchive(t.Context(), sources.FilesConfig{Place: dir, Table: "app", Keys: blogKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return source
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestArchivedRecordsAreRead(t *testing.T) {
	for _, packed := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "made", "for it")
		writer := newArchive(t, archive.Config{Dir: dir, Gzip: packed})
		records, want := streamRecords(t, 0, 1_203)
		write(t, writer, records[:1_100])
		write(t, writer, records[1_100:])
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		open := func() sources.Source { return openArchive(t, dir) }
		for _, begun := range []func() sources.Source{nil, open} {
			keys, sum := readAll(t, open(), begun)
			if diff := cmp.Diff(sortedKeys(want), keys); diff != "" || sum.Items != 1_203 || sum.Skipped != 0 {
				t.Errorf("packed %v: %+v, keys (-want +got):\n%s", packed, sum, diff)
			}
		}
	}
}

// TestAnArchiveCutAnywhereKeepsWhatWasOnDisk cuts a file at every length that a killed
// process may leave: behind all that was written before, anywhere in what was not done.
func TestAnArchiveCutAnywhereKeepsWhatWasOnDisk(t *testing.T) {
	for _, packed := range []bool{false, true} {
		dir := t.TempDir()
		writer := newArchive(t, archive.Config{Dir: dir, Gzip: packed})
		records, want := streamRecords(t, 0, 4)
		write(t, writer, records[:2])
		file := filesIn(t, dir)[0]
		durable, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, writer, records[2:])
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		skipped := int64(0)
		for length := len(durable); length <= len(whole); length++ {
			if err := os.WriteFile(file, whole[:length], 0o600); err != nil {
				t.Fatal(err)
			}
			page, err := openArchive(t, dir).Read(t.Context(), sources.Piece{Name: filepath.Base(file)}, "")
			if err != nil {
				t.Fatalf("packed %v, cut at %d: %v", packed, length, err)
			}
			if diff := cmp.Diff(want[:len(page.Keys)], page.Keys); diff != "" || len(page.Keys) < 2 || !page.Last || page.Skipped > 1 {
				t.Fatalf("packed %v, cut at %d: %+v\n%s", packed, length, page, diff)
			}
			skipped += page.Skipped
		}
		if skipped < 10 {
			t.Errorf("packed %v: only %d torn ends were counted", packed, skipped)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryCutOfAPackedFileCanBeRead(t *testing.T) {
	dir := t.TempDir()
	writer := newArchive(t, archive.Config{Dir: dir, Gzip: true})
	records, _ := streamRecords(t, 0, 1)
	write(t, writer, records)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	file := filesIn(t, dir)[0]
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for length := range whole {
		if err := os.WriteFile(file, whole[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		if page, err := openArchive(t, dir).Read(t.Context(), sources.Piece{Name: filepath.Base(file)}, ""); err != nil || !page.Last {
			t.Errorf("cut at %d: %+v, %v", length, page, err)
		}
	}
}

func TestArchiveFilesAreChangedBySizeAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		writer := newArchive(t, archive.Config{Dir: dir, FileBytesMax: 2_000})
		records, want := streamRecords(t, 0, 40)
		for i := range 20 { // about 400 bytes each
			write(t, writer, records[i:i+1])
		}
		bySize := len(filesIn(t, dir))
		if bySize < 3 || bySize > 8 {
			t.Errorf("%d files by size", bySize)
		}
		time.Sleep(time.Hour)
		write(t, writer, records[20:21])
		if got := len(filesIn(t, dir)); got != bySize+1 {
			t.Errorf("%d files an hour later, before %d", got, bySize)
		}
		second := newArchive(t, archive.Config{Dir: dir}) // of another process, at the same moment
		write(t, second, records[21:])
		for _, w := range []*archive.Writer{writer, second} {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		keys, _ := readAll(t, openArchive(t, dir), nil)
		if diff := cmp.Diff(sortedKeys(want), keys); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	})
}

func TestManyMayWriteAtOnce(t *testing.T) {
	dir := t.TempDir()
	writer := newArchive(t, archive.Config{Dir: dir, Gzip: true, FileBytesMax: 20_000})
	records, want := streamRecords(t, 0, 800)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := i * 100; n < (i+1)*100; n += 5 {
				if err := writer.Write(records[n : n+5]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	keys, sum := readAll(t, openArchive(t, dir), nil) // without Close: all that was written is there
	if diff := cmp.Diff(sortedKeys(want), keys); diff != "" || sum.Skipped > 1 {
		t.Errorf("%d torn ends, keys (-want +got):\n%s", sum.Skipped, diff)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
}

// half is a Processor that does the first half of what it is given.
type half struct{ err error }

func (p half) Process(_ context.Context, records []change.Record) (int, error) {
	return len(records) / 2, p.err
}

func TestRecordsAreArchivedBeforeTheyAreDone(t *testing.T) {
	dir := t.TempDir()
	records, want := streamRecords(t, 0, 10)
	failed := errors.New("throttled")
	recorder := archive.Recorder{Processor: half{failed}, Writer: newArchive(t, archive.Config{Dir: dir, FileBytesMax: 1})}
	if done, err := recorder.Process(t.Context(), records); done != 5 || !errors.Is(err, failed) {
		t.Errorf("%d done, %v", done, err)
	}
	keys, _ := readAll(t, openArchive(t, dir), nil)
	if diff := cmp.Diff(sortedKeys(want[:5]), keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if err := os.RemoveAll(dir); err != nil { // so that the next file cannot be made
		t.Fatal(err)
	}
	done, err := recorder.Process(t.Context(), records)
	var unwritten *archive.WriteError
	if done != 0 || !errors.As(err, &unwritten) || !unwritten.StopReading() || !strings.Contains(err.Error(), dir) {
		t.Errorf("%d done without an archive, %v", done, err)
	}
}

func TestAnArchiveThatCannotBeWrittenIsRefusedAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Open(archive.Config{Dir: file, StreamARN: streamARN, PartitionKey: "pk"}); err == nil {
		t.Error("a file is accepted as a folder")
	}
	if _, err := archive.Open(archive.Config{Dir: t.TempDir(), StreamARN: "arn:x", PartitionKey: "pk"}); err == nil {
		t.Error("an ARN without a table is accepted")
	}
}

func TestFolderWithoutArchiveIsNamed(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("README.md", "not a record")
	put("app-2-20261121T000000Z-0123456789abcdef.ndjson", "of table app-2")
	if _, err := sources.OpenArchive(t.Context(), sources.FilesConfig{Place: dir, Table: "app", Keys: blogKeys}); err == nil ||
		!strings.Contains(err.Error(), "there is no archive") {
		t.Errorf("error %v", err)
	}
	const good = `{"dynamodb":{"Keys":{"pk":{"S":"a"},"sk":{"S":"b"}}}}`
	for content, want := range map[string]string{
		good + "\n{\"dynamodb\n" + good + "\n":          "line 2: it is not JSON",
		good + "\n\n" + good + "\n":                     "line 2: it is not JSON",
		good + "\n[]\n":                                 "line 2: it is no JSON object",
		good + "\nnull\n":                               "line 2: it is no JSON object",
		"{}\n":                                          `line 1: it has no member "dynamodb"`,
		"{\"dynamodb\":{}}\n":                           "line 1: it has no dynamodb.Keys",
		"{\"eventSourceARN\":5}\n":                      "line 1: its eventSourceARN is no text",
		`{"dynamodb":{"Keys":{"pk":{"S":"a"}}}}` + "\n": `it has no key attribute "sk"`,
		`{"eventSourceARN":"` + strings.Replace(streamARN, "app", "other", 1) + `"}` + "\n": "it is a record of another table",
		strings.Repeat("x", 9<<20) + "\n": "longer than 8 MB",
	} {
		put("mine.ndjson", content)
		_, err := openArchive(t, dir).Read(t.Context(), sources.Piece{Name: "mine.ndjson"}, "")
		if err == nil || !strings.Contains(err.Error(), "mine.ndjson: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: error %v, want %q", content, err, want)
		}
	}
	put("mine.ndjson.gz", "not gzip")
	if _, err := openArchive(t, dir).Read(t.Context(), sources.Piece{Name: "mine.ndjson.gz"}, ""); err == nil ||
		!strings.Contains(err.Error(), "it is not gzip") {
		t.Errorf("error %v", err)
	}
	put("mine.ndjson", string(bytes.Repeat([]byte(good+"\r\n"), 3))+good) // the last without an end, but whole
	page, err := openArchive(t, dir).Read(t.Context(), sources.Piece{Name: "mine.ndjson"}, "")
	if err != nil || len(page.Keys) != 4 || page.Skipped != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestALineThatIsBeingWrittenEndsAFile has a page end just there: the rest of the line, which
// comes a moment later, is none of its own.
func TestALineThatIsBeingWrittenEndsAFile(t *testing.T) {
	const line = `{"dynamodb":{"Keys":{"pk":{"S":"a"},"sk":{"S":"b"}}}}` + "\n"
	path := filepath.Join(t.TempDir(), "mine.ndjson")
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 499)+line[:20]), 0o600); err != nil {
		t.Fatal(err)
	}
	page, err := openArchive(t, filepath.Dir(path)).Read(t.Context(), sources.Piece{Name: "mine.ndjson"}, "")
	if err != nil || len(page.Keys) != 499 || page.Skipped != 1 || !page.Last {
		t.Errorf("%d keys, %d skipped, last %v, %v", len(page.Keys), page.Skipped, page.Last, err)
	}
}
