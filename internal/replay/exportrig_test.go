package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
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

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay"
	"github.com/dynamill/dynamill/internal/replay/objects"
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
		`"billedSizeBytes":0,"itemCount":%d,"outputFormat":"DYNAMODB_JSON","exportType":%q}`, tableARN, exportID, tableARN, exportRoot, exportID,
		items, kind))
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
	refusal   error  // of what is forbidden
}

func (c *bucketClient) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	content, ok := c.bucket[*in.Key]
	if !ok || *in.Bucket != "exports" {
		return nil, &s3types.NoSuchKey{}
	}
	if *in.Key == c.forbidden {
		return nil, c.refusal
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

func (c *bucketClient) ListObjectsV2(_ context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output,
	error) {
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

func openExport(t *testing.T, place string, client objects.S3Client) *replay.Files {
	t.Helper()
	export, err := replay.OpenExport(t.Context(), replay.FilesConfig{Place: place, S3: client, Table: "app", Keys: blogKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = export.Close() })
	return export
}
