package replay_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay"
)

func TestDamagedExportIsReportedBeforeItIsRead(t *testing.T) {
	const folder = exportRoot + exportID + "/"
	for name, test := range map[string]struct {
		spoil func(t *testing.T, b bucket)
		want  []string // all in the error
	}{
		"no export": {func(_ *testing.T, b bucket) { delete(b, folder+"manifest-summary.json") },
			[]string{"there is no export in ", "not finished"}},
		"two exports": {func(_ *testing.T, b bucket) { b[exportRoot+"0999-ff/manifest-summary.json"] = nil },
			[]string{"2 exports lie in ", exportID, "0999-ff"}},
		"a damaged summary": {func(t *testing.T, b bucket) { b.edit(t, folder+"manifest-summary.json", "2026", "2027") },
			[]string{"manifest-summary.json: its checksum is not that of manifest-summary.md5"}},
		"a damaged manifest of files": {func(t *testing.T, b bucket) { b.edit(t, folder+"manifest-files.json", "file00", "file09") },
			[]string{"manifest-files.json: its checksum"}},
		"no manifest of files": {func(_ *testing.T, b bucket) { delete(b, folder+"manifest-files.json") },
			[]string{"manifest-files.json: it is missing"}},
		"no checksum file": {func(_ *testing.T, b bucket) { delete(b, folder+"manifest-files.md5") },
			[]string{"manifest-files.md5: it is missing"}},
		"a summary that is none": {func(_ *testing.T, b bucket) { b.putManifest("manifest-summary", "[]") },
			[]string{"manifest-summary.json: it is no summary"}},
		"a summary without a table": {func(t *testing.T, b bucket) { b.editManifest(t, "manifest-summary", `"tableArn"`, `"x"`) },
			[]string{`names no table`}},
		"a summary without an export": {func(t *testing.T, b bucket) { b.editManifest(t, "manifest-summary", `"exportArn"`, `"x"`) },
			[]string{`its exportArn is missing`}},
		"another format": {func(t *testing.T, b bucket) { b.editManifest(t, "manifest-summary", `DYNAMODB_JSON`, `ION`) },
			[]string{`is in the format "ION": only DYNAMODB_JSON is read`}},
		"another table": {func(t *testing.T, b bucket) {
			b.editManifest(t, "manifest-summary", `table/app"`, `table/application"`)
		},
			[]string{`is of another table: of arn:aws:dynamodb:eu-west-1:123456789012:table/application, not of "app"`}},
		"other counts": {func(t *testing.T, b bucket) { b.editManifest(t, "manifest-summary", `"itemCount":7`, `"itemCount":8`) },
			[]string{"its files hold 7 items together, but manifest-summary.json says 8"}},
		"missing and empty files": {func(_ *testing.T, b bucket) {
			delete(b, folder+"data/file00.json.gz")
			delete(b, folder+"data/file02.json.gz")
			b[folder+"data/file01.json.gz"] = nil
		}, []string{"3 problems", "data/file00.json.gz: it is missing", "data/file02.json.gz: it is missing",
			"data/file01.json.gz: it is empty, but has 3 items"}},
		"lines that describe no file": {func(_ *testing.T, b bucket) {
			good := `{"itemCount":1,"md5Checksum":"1B2M2Y8AsgTpgAmY7PhCfg==","dataFileS3Key":"data/file00.json.gz"}`
			b.putManifest("manifest-files", strings.Join([]string{good, "", "nothing", "{}", good,
				`{"md5Checksum":"1B2M2Y8AsgTpgAmY7PhCfg==","dataFileS3Key":"data/a.json.gz"}`,
				`{"itemCount":1,"md5Checksum":"1B2M","dataFileS3Key":"data/a.json.gz"}`}, "\n"))
		}, []string{"5 problems", "line 3: it is no JSON object", "line 4: it has no dataFileS3Key", "line 5: it names file00.json.gz twice",
			"line 6: it has no itemCount", `line 7: its md5Checksum "1B2M" is none`}},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := exportOf(7)
			test.spoil(t, b)
			for _, place := range []string{"s3://exports/2026-Nov", b.inFolder(t)} {
				_, err := replay.OpenExport(t.Context(), replay.FilesConfig{Place: place, S3: &bucketClient{bucket: b}, Table: "app", Keys: blogKeys})
				for _, want := range test.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: error %v, want %q in it", place, err, want)
					}
				}
			}
		})
	}
}

func TestADamagedFileFailsWithItsName(t *testing.T) {
	const name = exportRoot + exportID + "/data/file00.json.gz"
	lines := make([]string, 1_700) // four pages
	for i := range lines {
		lines[i] = itemLine(change.Key{Partition: fmt.Sprint("USER#", i), Sort: "PROFILE"})
	}
	for damage, test := range map[string]struct {
		spoil func(content []byte) []byte
		want  string
	}{
		"cut":           {func(c []byte) []byte { return c[:len(c)-40] }, "it breaks off"},
		"no gzip":       {func([]byte) []byte { return []byte(strings.Join(lines, "\n")) }, "it is not gzip"},
		"a flipped bit": {func(c []byte) []byte { c[len(c)/2] ^= 1; return c }, "file00.json.gz: "},
		"another file": {func([]byte) []byte { return packed(strings.Join(slices.Sorted(slices.Values(lines)), "\n") + "\n") },
			"its checksum is not that of"},
		"a line less": {func([]byte) []byte { return packed(strings.Join(lines[1:], "\n") + "\n") }, "other than that many lines"},
		"a line more": {func([]byte) []byte { return packed(strings.Join(lines, "\n") + "\n" + lines[0] + "\n") },
			"other than that many lines"},
		"something added": {func(c []byte) []byte { return append(c, 0) }, "file00.json.gz: "},
		"no JSON":         {func([]byte) []byte { return packed(lines[0] + "\nnonsense\n") }, "line 2: it is not JSON"},
		"no key":          {func([]byte) []byte { return packed(`{"Item":{"pk":{"S":"a"}}}`) }, `line 1: Item: it has no key attribute "sk"`},
		"no item":         {func([]byte) []byte { return packed(`{}`) }, `line 1: it has neither Item nor Keys`},
		"a binary key":    {func([]byte) []byte { return packed(`{"Item":{"pk":{"B":"YQ=="},"sk":{"S":"a"}}}`) }, `binary`},
	} {
		t.Run(damage, func(t *testing.T) {
			b := newExport(false, lines)
			b[name] = test.spoil(b[name])
			source := openExport(t, "s3://exports", &bucketClient{bucket: b})
			cursor, last := "", false
			for !last {
				page, err := source.Read(t.Context(), replay.Piece{Name: "file00.json.gz"}, cursor)
				if err == nil {
					cursor, last = page.Next, page.Last
					continue
				}
				if !replay.IsDamage(err) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v (%T), want damage that names the file and says %q", err, err, test.want)
				}
				return
			}
			t.Error("it was read as if it were whole")
		})
	}
}

// TestAFileThatWasDamagedIsReadFromItsBeginningOnceItIsMended is that nothing is taken for
// done that was read of another file.
func TestAFileThatWasDamagedIsReadFromItsBeginningOnceItIsMended(t *testing.T) {
	const name = exportRoot + exportID + "/data/file00.json.gz"
	b, keys := exportOf(3_000)
	for damage, content := range map[string]string{
		"another file":           strings.Repeat(itemLine(change.Key{Partition: "USER#0", Sort: "x"})+"\n", 1_500),
		"a file of fewer lines":  strings.Repeat(itemLine(change.Key{Partition: "USER#0", Sort: "x"})+"\n", 1_200),
		"a line that is no JSON": strings.Repeat(itemLine(change.Key{Partition: "USER#0", Sort: "x"})+"\n", 1_200) + "x\n",
	} {
		t.Run(damage, func(t *testing.T) {
			r := newRig(t)
			folder := b.inFolder(t)
			path := filepath.Join(folder, filepath.FromSlash(name))
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, packed(content), 0o600); err != nil {
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
	const name = exportRoot + exportID + "/data/file00.json.gz"
	lines := make([]string, 1_500)
	for i := range lines {
		lines[i] = itemLine(keyOf(i))
	}
	b := newExport(false, lines)
	r := newRig(t)
	folder := b.inFolder(t)
	path := filepath.Join(folder, filepath.FromSlash(name))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Repeat(itemLine(change.Key{Partition: "USER#0", Sort: "x"})+"\n", len(lines))
	if err := os.WriteFile(path, packed(other), 0o600); err != nil {
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
