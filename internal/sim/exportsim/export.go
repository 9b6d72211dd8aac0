// Package exportsim lays out exports of a table to S3 as DynamoDB does, in a simulated bucket or in a folder, for tests of
// what reads them. A test can damage every object. It knows change, and the types of the S3 client.
package exportsim

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamill/dynamill/change"
)

// The export that this package lays out.
const (
	ID       = "01693685827463-2d8752fd"
	Root     = "2026-Nov/AWSDynamoDB/" // holds the export's folder, which is named by its ID
	TableARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/app"
)

// Bucket is the content of a bucket: objects by name.
type Bucket map[string][]byte

// Packed compresses a text as DynamoDB compresses data files.
func Packed(text string) []byte {
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

// PutManifest writes a manifest with its checksum file.
func (b Bucket) PutManifest(name, content string) {
	b[Root+ID+"/"+name+".json"] = []byte(content)
	b[Root+ID+"/"+name+".md5"] = []byte(sumOf([]byte(content)))
}

// New lays out an export as DynamoDB does, with these lines in its files.
func New(incremental bool, files ...[]string) Bucket {
	b := Bucket{Root + ID + "/_started": nil}
	folder, kind := Root+ID+"/data/", "FULL_EXPORT"
	if incremental {
		folder, kind = Root+"data/", "INCREMENTAL_EXPORT"
	}
	var manifest strings.Builder
	items := 0
	for i, lines := range files {
		name := fmt.Sprintf("%sfile%02d.json.gz", folder, i)
		text := strings.Join(lines, "\n")
		if len(lines) > 0 {
			text += "\n"
		}
		b[name] = Packed(text)
		fmt.Fprintf(&manifest, `{"itemCount":%d,"md5Checksum":%q,"etag":"0123-1","dataFileS3Key":%q}`+"\n", len(lines), sumOf(b[name]), name)
		items += len(lines)
	}
	b.PutManifest("manifest-files", manifest.String())
	b.PutManifest("manifest-summary", fmt.Sprintf(`{"version":"2023-08-01","exportArn":"%s/export/%s","startTime":"2026-11-04T07:28:34.028Z",`+
		`"endTime":"2026-11-04T07:33:43.897Z","tableArn":%q,"tableId":"12345a12-abcd-123a-ab12-1234abc12345",`+
		`"exportTime":"2026-11-04T07:28:34.028Z",`+
		`"s3Bucket":"exports","s3Prefix":"2026-Nov","s3SseAlgorithm":"AES256","s3SseKmsKeyId":null,`+
		`"manifestFilesS3Key":"%s%s/manifest-files.json",`+
		`"billedSizeBytes":0,"itemCount":%d,"outputFormat":"DYNAMODB_JSON","exportType":%q}`, TableARN, ID, TableARN, Root, ID,
		items, kind))
	return b
}

// Edit replaces a text in an object.
func (b Bucket) Edit(t testing.TB, name, old, new string) {
	t.Helper()
	if !bytes.Contains(b[name], []byte(old)) {
		t.Fatalf("%s holds no %q", name, old)
	}
	b[name] = bytes.ReplaceAll(b[name], []byte(old), []byte(new))
}

// EditManifest replaces a text in a manifest and renews its checksum file.
func (b Bucket) EditManifest(t testing.TB, name, old, new string) {
	t.Helper()
	b.Edit(t, Root+ID+"/"+name+".json", old, new)
	b.PutManifest(name, string(b[Root+ID+"/"+name+".json"]))
}

// InFolder writes the objects to a folder and returns it.
func (b Bucket) InFolder(t testing.TB) string {
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

// ItemLine is the line that a full export has for an item with this key.
func ItemLine(key change.Key) string {
	pk, _ := json.Marshal(key.Partition)
	sk, _ := json.Marshal(key.Sort)
	return fmt.Sprintf(`{"Item":{"name":{"M":{"pk":{"S":"not this one"}}},"pk":{"S":%s},"sk":{"S":%s},"n":{"N":"1"}}}`, pk, sk)
}

// OfItems lays out a full export of n items in three files, and returns the keys of the items.
func OfItems(n int) (Bucket, []change.Key) {
	var keys []change.Key
	files := [][]string{{}, {}, {}} // the last stays empty, as for an empty partition
	for i := range n {
		key := change.Key{Partition: fmt.Sprintf("USER#\"%d\"\n", i), Sort: "POST#ü"}
		keys = append(keys, key)
		files[i%2] = append(files[i%2], ItemLine(key))
	}
	return New(false, files...), keys
}
