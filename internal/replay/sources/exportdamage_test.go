package sources_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/sim/exportsim"
)

func TestDamagedExportIsReportedBeforeItIsRead(t *testing.T) {
	const folder = exportsim.Root + exportsim.ID + "/"
	for name, test := range map[string]struct {
		spoil func(t *testing.T, b exportsim.Bucket)
		want  []string // all in the error
	}{
		"no export": {func(_ *testing.T, b exportsim.Bucket) { delete(b, folder+"manifest-summary.json") },
			[]string{"there is no export in ", "not finished"}},
		"two exports": {func(_ *testing.T, b exportsim.Bucket) { b[exportsim.Root+"0999-ff/manifest-summary.json"] = nil },
			[]string{"2 exports lie in ", exportsim.ID, "0999-ff"}},
		"a damaged summary": {func(t *testing.T, b exportsim.Bucket) { b.Edit(t, folder+"manifest-summary.json", "2026", "2027") },
			[]string{"manifest-summary.json: its checksum is not that of manifest-summary.md5"}},
		"a damaged manifest of files": {func(t *testing.T, b exportsim.Bucket) { b.Edit(t, folder+"manifest-files.json", "file00", "file09") },
			[]string{"manifest-files.json: its checksum"}},
		"no manifest of files": {func(_ *testing.T, b exportsim.Bucket) { delete(b, folder+"manifest-files.json") },
			[]string{"manifest-files.json: it is missing"}},
		"no checksum file": {func(_ *testing.T, b exportsim.Bucket) { delete(b, folder+"manifest-files.md5") },
			[]string{"manifest-files.md5: it is missing"}},
		"a summary that is none": {func(_ *testing.T, b exportsim.Bucket) { b.PutManifest("manifest-summary", "[]") },
			[]string{"manifest-summary.json: it is no summary"}},
		"a summary without a table": {func(t *testing.T, b exportsim.Bucket) { b.EditManifest(t, "manifest-summary", `"tableArn"`, `"x"`) },
			[]string{`names no table`}},
		"a summary without an export": {func(t *testing.T, b exportsim.Bucket) { b.EditManifest(t, "manifest-summary", `"exportArn"`, `"x"`) },
			[]string{`its exportArn is missing`}},
		"another format": {func(t *testing.T, b exportsim.Bucket) { b.EditManifest(t, "manifest-summary", `DYNAMODB_JSON`, `ION`) },
			[]string{`is in the format "ION": only DYNAMODB_JSON is read`}},
		"another table": {func(t *testing.T, b exportsim.Bucket) {
			b.EditManifest(t, "manifest-summary", `table/app"`, `table/application"`)
		},
			[]string{`is of another table: of arn:aws:dynamodb:eu-west-1:123456789012:table/application, not of "app"`}},
		"other counts": {func(t *testing.T, b exportsim.Bucket) {
			b.EditManifest(t, "manifest-summary", `"itemCount":7`, `"itemCount":8`)
		},
			[]string{"its files hold 7 items together, but manifest-summary.json says 8"}},
		"missing and empty files": {func(_ *testing.T, b exportsim.Bucket) {
			delete(b, folder+"data/file00.json.gz")
			delete(b, folder+"data/file02.json.gz")
			b[folder+"data/file01.json.gz"] = nil
		}, []string{"3 problems", "data/file00.json.gz: it is missing", "data/file02.json.gz: it is missing",
			"data/file01.json.gz: it is empty, but has 3 items"}},
		"lines that describe no file": {func(_ *testing.T, b exportsim.Bucket) {
			good := `{"itemCount":1,"md5Checksum":"1B2M2Y8AsgTpgAmY7PhCfg==","dataFileS3Key":"data/file00.json.gz"}`
			b.PutManifest("manifest-files", strings.Join([]string{good, "", "nothing", "{}", good,
				`{"md5Checksum":"1B2M2Y8AsgTpgAmY7PhCfg==","dataFileS3Key":"data/a.json.gz"}`,
				`{"itemCount":1,"md5Checksum":"1B2M","dataFileS3Key":"data/a.json.gz"}`}, "\n"))
		}, []string{"5 problems", "line 3: it is no JSON object", "line 4: it has no dataFileS3Key", "line 5: it names file00.json.gz twice",
			"line 6: it has no itemCount", `line 7: its md5Checksum "1B2M" is none`}},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := exportsim.OfItems(7)
			test.spoil(t, b)
			for _, place := range []string{"s3://exports/2026-Nov", b.InFolder(t)} {
				_, err := sources.OpenExport(t.Context(), sources.FilesConfig{
					Place: place, S3: &exportsim.Client{Bucket: b}, Table: "app", Keys: blogKeys,
				})
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
	const name = exportsim.Root + exportsim.ID + "/data/file00.json.gz"
	lines := make([]string, 1_700) // four pages
	for i := range lines {
		lines[i] = exportsim.ItemLine(change.Key{Partition: fmt.Sprint("USER#", i), Sort: "PROFILE"})
	}
	for damage, test := range map[string]struct {
		spoil func(content []byte) []byte
		want  string
	}{
		"cut":           {func(c []byte) []byte { return c[:len(c)-40] }, "it breaks off"},
		"no gzip":       {func([]byte) []byte { return []byte(strings.Join(lines, "\n")) }, "it is not gzip"},
		"a flipped bit": {func(c []byte) []byte { c[len(c)/2] ^= 1; return c }, "file00.json.gz: "},
		"another file": {func([]byte) []byte {
			return exportsim.Packed(strings.Join(slices.Sorted(slices.Values(lines)), "\n") + "\n")
		},
			"its checksum is not that of"},
		"a line less": {func([]byte) []byte { return exportsim.Packed(strings.Join(lines[1:], "\n") + "\n") }, "other than that many lines"},
		"a line more": {func([]byte) []byte { return exportsim.Packed(strings.Join(lines, "\n") + "\n" + lines[0] + "\n") },
			"other than that many lines"},
		"something added": {func(c []byte) []byte { return append(c, 0) }, "file00.json.gz: "},
		"no JSON":         {func([]byte) []byte { return exportsim.Packed(lines[0] + "\nnonsense\n") }, "line 2: it is not JSON"},
		"no key": {func([]byte) []byte { return exportsim.Packed(`{"Item":{"pk":{"S":"a"}}}`) },
			`line 1: Item: it has no key attribute "sk"`},
		"no item":      {func([]byte) []byte { return exportsim.Packed(`{}`) }, `line 1: it has neither Item nor Keys`},
		"a binary key": {func([]byte) []byte { return exportsim.Packed(`{"Item":{"pk":{"B":"YQ=="},"sk":{"S":"a"}}}`) }, `binary`},
	} {
		t.Run(damage, func(t *testing.T) {
			b := exportsim.New(false, lines)
			b[name] = test.spoil(b[name])
			source := openExport(t, "s3://exports", &exportsim.Client{Bucket: b})
			cursor, last := "", false
			for !last {
				page, err := source.Read(t.Context(), sources.Piece{Name: "file00.json.gz"}, cursor)
				if err == nil {
					cursor, last = page.Next, page.Last
					continue
				}
				if !sources.IsDamage(err) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v (%T), want damage that names the file and says %q", err, err, test.want)
				}
				return
			}
			t.Error("it was read as if it were whole")
		})
	}
}
