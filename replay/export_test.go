package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/replay"
	"github.com/dynamill/dynamill/replay/objects"
)

const (
	exportID   = "01693685827463-2d8752fd"
	exportRoot = "2026-Nov/AWSDynamoDB/"
	tableARN   = "arn:aws:dynamodb:eu-west-1:123456789012:table/app"
)

// bucket is a set of objects by name.
type bucket map[string][]byte

func packed(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

func sumOf(content []byte) string {
	sum := md5.Sum(content)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// putManifest writes a manifest with its checksum file.
func (b bucket) putManifest(name, content string) {
	b[exportRoot+exportID+"/"+name+".json"] = []byte(content)
	b[exportRoot+exportID+"/"+name+".md5"] = []byte(sumOf([]byte(content)))
}

// newExport lays out an export as DynamoDB does, with these lines in its files.
func newExport(incremental bool, files ...[]string) bucket {
	b := bucket{exportRoot + exportID + "/_started": nil}
	folder, kind := exportRoot+exportID+"/data/", "FULL_EXPORT"
	if incremental {
		folder, kind = exportRoot+"data/", "INCREMENTAL_EXPORT"
	}
	var manifest strings.Builder
	items := 0
	for i, lines := range files {
		name := fmt.Sprintf("%sfile%02d.json.gz", folder, i)
		text := strings.Join(lines, "\n")
		if len(lines) > 0 {
			text += "\n"
		}
		b[name] = packed(text)
		fmt.Fprintf(&manifest, `{"itemCount":%d,"md5Checksum":%q,"etag":"0123-1","dataFileS3Key":%q}`+"\n", len(lines), sumOf(b[name]), name)
		items += len(lines)
	}
	b.putManifest("manifest-files", manifest.String())
	b.putManifest("manifest-summary", fmt.Sprintf(`{"version":"2023-08-01","exportArn":"%s/export/%s","startTime":"2026-11-04T07:28:34.028Z",`+
		`"endTime":"2026-11-04T07:33:43.897Z","tableArn":%q,"tableId":"12345a12-abcd-123a-ab12-1234abc12345","exportTime":"2026-11-04T07:28:34.028Z",`+
		`"s3Bucket":"exports","s3Prefix":"2026-Nov","s3SseAlgorithm":"AES256","s3SseKmsKeyId":null,"manifestFilesS3Key":"%s%s/manifest-files.json",`+
		`"billedSizeBytes":0,"itemCount":%d,"outputFormat":"DYNAMODB_JSON","exportType":%q}`, tableARN, exportID, tableARN, exportRoot, exportID, items, kind))
	return b
}

// edit replaces a text in an object.
func (b bucket) edit(t *testing.T, name, old, new string) {
	t.Helper()
	if !bytes.Contains(b[name], []byte(old)) {
		t.Fatalf("%s holds no %q", name, old)
	}
	b[name] = bytes.ReplaceAll(b[name], []byte(old), []byte(new))
}

// editManifest replaces a text in a manifest and renews its checksum file.
func (b bucket) editManifest(t *testing.T, name, old, new string) {
	t.Helper()
	b.edit(t, exportRoot+exportID+"/"+name+".json", old, new)
	b.putManifest(name, string(b[exportRoot+exportID+"/"+name+".json"]))
}

// inFolder writes the objects to a folder and returns it.
func (b bucket) inFolder(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range b {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// bucketClient is S3 with one bucket, exports, that lists few objects at a time.
type bucketClient struct {
	bucket
	cutAfter  int // bytes that the next body gives before its connection breaks; 0: all
	opened    int
	forbidden string // a name
}

func (c *bucketClient) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	content, ok := c.bucket[*in.Key]
	if !ok || *in.Bucket != "exports" {
		return nil, &s3types.NoSuchKey{}
	}
	if *in.Key == c.forbidden {
		return nil, errors.New("no route to host")
	}
	c.opened++
	if c.cutAfter == 0 {
		return &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(content))}, nil
	}
	body := io.MultiReader(bytes.NewReader(content[:min(c.cutAfter, len(content))]), brokenConnection{})
	c.cutAfter = 0
	return &s3.GetObjectOutput{Body: io.NopCloser(body)}, nil
}

type brokenConnection struct{}

func (brokenConnection) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (c *bucketClient) ListObjectsV2(_ context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	out := &s3.ListObjectsV2Output{IsTruncated: aws.Bool(false)}
	for _, name := range slices.Sorted(maps.Keys(c.bucket)) {
		if !strings.HasPrefix(name, *in.Prefix) || name <= aws.ToString(in.ContinuationToken) {
			continue
		}
		if len(out.Contents) == 2 {
			out.IsTruncated, out.NextContinuationToken = aws.Bool(true), out.Contents[1].Key
			break
		}
		out.Contents = append(out.Contents, s3types.Object{Key: aws.String(name), Size: aws.Int64(int64(len(c.bucket[name])))})
	}
	return out, nil
}

func itemLine(key change.Key) string {
	pk, _ := json.Marshal(key.Partition)
	sk, _ := json.Marshal(key.Sort)
	return fmt.Sprintf(`{"Item":{"name":{"M":{"pk":{"S":"not this one"}}},"pk":{"S":%s},"sk":{"S":%s},"n":{"N":"1"}}}`, pk, sk)
}

func exportOf(n int) (bucket, []change.Key) {
	var keys []change.Key
	files := [][]string{{}, {}, {}} // the last stays empty, as for an empty partition
	for i := range n {
		key := change.Key{Partition: fmt.Sprintf("USER#\"%d\"\n", i), Sort: "POST#ü"}
		keys = append(keys, key)
		files[i%2] = append(files[i%2], itemLine(key))
	}
	return newExport(false, files...), keys
}

func openExport(t *testing.T, place string, client objects.S3Client) *replay.Export {
	t.Helper()
	export, err := replay.OpenExport(t.Context(), replay.ExportConfig{Place: place, S3: client, Table: "app", Keys: blogKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = export.Close() })
	return export
}

func TestAFullExportGivesItsKeysWhereverOnePoints(t *testing.T) {
	b, want := exportOf(1_203)
	root := b.inFolder(t)
	for _, place := range []string{
		"s3://exports/" + exportRoot + exportID, "s3://exports/" + exportRoot + exportID + "/", "s3://exports/2026-Nov/AWSDynamoDB",
		"s3://exports/2026-Nov", "s3://exports", "s3://exports/" + exportRoot + exportID + "/manifest-summary.json",
		filepath.Join(root, exportRoot, exportID), filepath.Join(root, exportRoot), root,
		filepath.Join(root, exportRoot, exportID, "manifest-summary.json"),
	} {
		open := func() replay.Source { return openExport(t, place, &bucketClient{bucket: b}) }
		source := open()
		if !strings.HasPrefix(source.Describe(), "export ") || !strings.HasSuffix(source.Describe(), "/AWSDynamoDB/"+exportID) {
			t.Errorf("%s is described as %q", place, source.Describe())
		}
		pieces, err := source.Pieces(t.Context())
		if diff := cmp.Diff([]replay.Piece{{Name: "file00.json.gz", Items: 602}, {Name: "file01.json.gz", Items: 601}, {Name: "file02.json.gz"}}, pieces); diff != "" || err != nil {
			t.Errorf("%s: pieces (-want +got):\n%s%v", place, diff, err)
		}
		for _, begun := range []func() replay.Source{nil, open} {
			keys, sum := readAll(t, source, begun)
			if diff := cmp.Diff(sortedKeys(want), keys); diff != "" || sum.Items != 1_203 {
				t.Fatalf("%s: %d items, keys (-want +got):\n%s", place, sum.Items, diff)
			}
		}
	}
}

func TestAnIncrementalExportGivesTheKeysOfDeletedItemsToo(t *testing.T) {
	const image = `{"pk":{"S":"not this one"},"sk":{"S":"x"}}`
	line := func(micros, key, images string) string {
		return `{"Metadata":{"WriteTimestampMicros":` + micros + `},"Keys":{"pk":{"S":"` + key + `"},"sk":{"N":"-5"}}` + images + `}`
	}
	lines := []string{
		line(`"1680109764000000"`, "inserted", `,"NewImage":`+image),
		line(`{"N":"1680109764000000"}`, "modified", `,"OldImage":`+image+`,"NewImage":`+image),
		line(`1680109764000000`, "deleted", `,"OldImage":`+image),
		line(`"1680109764000000"`, "deleted without an image", ``),
	}
	var want []change.Key
	for _, name := range []string{"deleted", "deleted without an image", "inserted", "modified"} {
		want = append(want, change.Key{Partition: name, Sort: "-5"})
	}
	b := newExport(true, lines[:1], lines[1:])
	b[exportRoot+"data/ofanotherexport.json.gz"] = []byte("not of this one")
	moved := maps.Clone(b) // somebody copied the files into the export's folder
	for name, content := range b {
		if rest, ok := strings.CutPrefix(name, exportRoot+"data/"); ok {
			moved[exportRoot+exportID+"/data/"+rest] = content
			delete(moved, name)
		}
	}
	for _, b := range []bucket{b, moved} {
		for _, place := range []string{"s3://exports/" + exportRoot + exportID, filepath.Join(b.inFolder(t), exportRoot, exportID)} {
			source := openExport(t, place, &bucketClient{bucket: b})
			if !strings.HasPrefix(source.Describe(), "incremental export ") {
				t.Errorf("described as %q", source.Describe())
			}
			keys, _ := readAll(t, source, nil)
			if diff := cmp.Diff(sortedKeys(want), keys); diff != "" {
				t.Errorf("%s: keys (-want +got):\n%s", place, diff)
			}
		}
	}
}

func TestWhatIsWrongWithAnExportIsToldBeforeAnythingIsRead(t *testing.T) {
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
		}, []string{"3 problems", "data/file00.json.gz: it is missing", "data/file02.json.gz: it is missing", "data/file01.json.gz: it is empty, but has 3 items"}},
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
				_, err := replay.OpenExport(t.Context(), replay.ExportConfig{Place: place, S3: &bucketClient{bucket: b}, Table: "app", Keys: blogKeys})
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
		"cut":             {func(c []byte) []byte { return c[:len(c)-40] }, "it breaks off"},
		"no gzip":         {func([]byte) []byte { return []byte(strings.Join(lines, "\n")) }, "it is not gzip"},
		"a flipped bit":   {func(c []byte) []byte { c[len(c)/2] ^= 1; return c }, "file00.json.gz: "},
		"another file":    {func([]byte) []byte { return packed(strings.Join(slices.Sorted(slices.Values(lines)), "\n") + "\n") }, "its checksum is not that of"},
		"a line less":     {func([]byte) []byte { return packed(strings.Join(lines[1:], "\n") + "\n") }, "other than that many lines"},
		"a line more":     {func([]byte) []byte { return packed(strings.Join(lines, "\n") + "\n" + lines[0] + "\n") }, "other than that many lines"},
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
				var wrong *replay.ExportError
				if !errors.As(err, &wrong) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v (%T), want an ExportError that names the file and says %q", err, err, test.want)
				}
				return
			}
			t.Error("it was read as if it were whole")
		})
	}
}

func TestABrokenConnectionIsNoDamage(t *testing.T) {
	b, _ := exportOf(6_000)
	client := &bucketClient{bucket: b, cutAfter: 0}
	source := openExport(t, "s3://exports", client)
	piece := replay.Piece{Name: "file00.json.gz"}
	client.cutAfter = 2_000
	var cursor string
	read, failed := 0, false
	for last := false; !last; {
		page, err := source.Read(t.Context(), piece, cursor)
		if err != nil {
			var wrong *replay.ExportError
			if failed || errors.As(err, &wrong) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("error %v (%T)", err, err)
			}
			failed = true
			continue
		}
		read += len(page.Keys)
		cursor, last = page.Next, page.Last
	}
	if read != 3_000 {
		t.Errorf("%d keys, want 3,000", read)
	}
}

func TestAFileIsUnpackedOnceForAllItsPages(t *testing.T) {
	b, _ := exportOf(6_000)
	client := &bucketClient{bucket: b}
	source := openExport(t, "s3://exports", client)
	client.opened = 0
	readAll(t, source, nil)
	if client.opened != 3 {
		t.Errorf("3 files were opened %d times", client.opened)
	}
}

func TestAPageIsReadThoughTheOneBeforeWasStopped(t *testing.T) {
	b, want := exportOf(1_200)
	source := openExport(t, "s3://exports", &bucketClient{bucket: b})
	piece := replay.Piece{Name: "file00.json.gz"}
	ctx, stop := context.WithCancel(t.Context())
	page, err := source.Read(ctx, piece, "")
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := source.Read(ctx, piece, page.Next); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped Read: %v", err)
	}
	page, err = source.Read(t.Context(), piece, page.Next)
	if err != nil || len(page.Keys) != 100 || page.Keys[99] != want[1_198] {
		t.Errorf("%d keys: %v", len(page.Keys), err)
	}
}

func TestOtherPlacesPiecesAndCursorsAreRefused(t *testing.T) {
	b, _ := exportOf(7)
	source := openExport(t, "s3://exports", &bucketClient{bucket: b})
	for _, test := range []struct{ piece, cursor, want string }{
		{"file99.json.gz", "", "is no piece of export"},
		{"file00.json.gz", "x", "is no number"},
		{"file00.json.gz", "-1", "is no number"},
		{"file00.json.gz", "5", "it has only 4 lines"},
	} {
		if _, err := source.Read(t.Context(), replay.Piece{Name: test.piece}, test.cursor); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("piece %q, cursor %q: %v, want %q", test.piece, test.cursor, err, test.want)
		}
	}
	for place, want := range map[string]string{"": "is empty", "s3://": "is not s3://bucket/prefix", "s3://b/c": "no client"} {
		_, err := replay.OpenExport(t.Context(), replay.ExportConfig{Place: place, Table: "app", Keys: blogKeys})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("place %q: %v, want %q", place, err, want)
		}
	}
	client := &bucketClient{bucket: b, forbidden: exportRoot + exportID + "/manifest-files.json"}
	_, err := replay.OpenExport(t.Context(), replay.ExportConfig{Place: "s3://exports", S3: client, Table: "app", Keys: blogKeys})
	if err == nil || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("a manifest that cannot be read: %v", err)
	}
}
