package replay_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/objects"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/sim/exportsim"
)

func openExport(t *testing.T, place string, client objects.S3Client) *sources.Files {
	t.Helper()
	export, err := sources.OpenExport(t.Context(), sources.FilesConfig{Place: place, S3: client, Table: "app", Keys: blogKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = export.Close() })
	return export
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

func TestAConnectionThatBreaksOnceEndsNoPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		b, _ := exportsim.OfItems(1_203)
		client := &exportsim.Client{Bucket: b}
		source := openExport(t, "s3://exports", client)
		client.CutAfter = 500
		cfg := r.process().config(source)
		cfg.Parallel = 1 // the client is not made for more
		if totals, err := replay.Run(t.Context(), cfg); err != nil || totals.Items != 1_203 || client.CutAfter != 0 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

func TestAnExportOfAnEmptyTableIsReplayed(t *testing.T) {
	for _, b := range []exportsim.Bucket{exportsim.New(false), exportsim.New(false, nil, nil), exportsim.New(true)} {
		r := newRig(t)
		totals, err := replay.Run(t.Context(), r.process().config(openExport(t, b.InFolder(t), nil)))
		if err != nil || totals.Items != 0 || len(r.completed) != 1 {
			t.Errorf("%+v, %v, %v completed", totals, err, r.completed)
		}
	}
}

// TestAFileThatWasDamagedIsReadFromItsBeginningOnceItIsMended is that nothing is taken for
// done that was read of another file.
func TestAFileThatWasDamagedIsReadFromItsBeginningOnceItIsMended(t *testing.T) {
	const name = exportsim.Root + exportsim.ID + "/data/file00.json.gz"
	b, keys := exportsim.OfItems(3_000)
	for damage, content := range map[string]string{
		"another file":           strings.Repeat(exportsim.ItemLine(change.Key{Partition: "USER#0", Sort: "x"})+"\n", 1_500),
		"a file of fewer lines":  strings.Repeat(exportsim.ItemLine(change.Key{Partition: "USER#0", Sort: "x"})+"\n", 1_200),
		"a line that is no JSON": strings.Repeat(exportsim.ItemLine(change.Key{Partition: "USER#0", Sort: "x"})+"\n", 1_200) + "x\n",
	} {
		t.Run(damage, func(t *testing.T) {
			r := newRig(t)
			folder := b.InFolder(t)
			path := filepath.Join(folder, filepath.FromSlash(name))
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, exportsim.Packed(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var failed *replay.PiecesError
			if _, err := replay.Run(t.Context(), r.process().config(openExport(t, folder, nil))); !errors.As(err, &failed) {
				t.Fatalf("with %s the replay ended with %v", damage, err)
			}
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := replay.Run(t.Context(), r.process().config(openExport(t, folder, nil))); err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				if n := r.works["rederive "+key.String()]; n != 1 {
					t.Fatalf("%s was worked off %d times", key, n)
				}
			}
		})
	}
}

func TestAnArchiveFileThatWasMendedIsReadFromItsBeginning(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	line := func(n int) string {
		return fmt.Sprintf(`{"dynamodb":{"Keys":{"pk":{"S":"p%d"},"sk":{"S":"a"}}}}`+"\n", n)
	}
	var text strings.Builder
	for n := range 700 {
		text.WriteString(line(n))
	}
	path := filepath.Join(dir, "mine.ndjson")
	for _, content := range []string{text.String() + "x\n", line(1_000) + text.String()} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = replay.Run(t.Context(), r.process().config(openArchive(t, dir)))
	}
	if len(r.completed) != 1 || r.works["rederive p1000/a"] != 1 {
		t.Errorf("%v completed, the first line worked off %d times", r.completed, r.works["rederive p1000/a"])
	}
}

func TestReplacedFileIsReadFromItsBeginning(t *testing.T) {
	const name = exportsim.Root + exportsim.ID + "/data/file00.json.gz"
	lines := make([]string, 1_500)
	for i := range lines {
		lines[i] = exportsim.ItemLine(keyOf(i))
	}
	b := exportsim.New(false, lines)
	r := newRig(t)
	folder := b.InFolder(t)
	path := filepath.Join(folder, filepath.FromSlash(name))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Repeat(exportsim.ItemLine(change.Key{Partition: "USER#0", Sort: "x"})+"\n", len(lines))
	if err := os.WriteFile(path, exportsim.Packed(other), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := r.process().config(openExport(t, folder, nil))
	cfg.Parallel = 1
	if err := r.stopAfter(2, cfg); !errors.Is(err, errKilled) || r.begun != 2 { // each page is one item many times
		t.Fatalf("%d pages, %v", r.begun, err)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = replay.Run(t.Context(), r.process().config(openExport(t, folder, nil)))
	if err == nil || !strings.Contains(err.Error(), "it is another file now") {
		t.Errorf("the replay that went on ended with %v", err)
	}
	if _, err := replay.Run(t.Context(), r.process().config(openExport(t, folder, nil))); err != nil {
		t.Fatal(err)
	}
	if n := len(r.works); n != len(lines)+1 {
		t.Errorf("%d items were worked off, want %d", n, len(lines)+1)
	}
}
