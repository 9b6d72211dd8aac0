package dynamill

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/objects"
	"github.com/dynamill/dynamill/internal/sim/lambdatest"
)

// exported is the bucket "exports", with objects by name.
type exported map[string][]byte

var _ objects.S3Client = exported{}

func (b exported) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	content, ok := b[*in.Key]
	if !ok || *in.Bucket != "exports" {
		return nil, &s3types.NoSuchKey{}
	}
	return &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(content))}, nil
}

func (b exported) ListObjectsV2(_ context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	out := &s3.ListObjectsV2Output{}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if strings.HasPrefix(name, aws.ToString(in.Prefix)) {
			out.Contents = append(out.Contents, s3types.Object{Key: &name, Size: aws.Int64(int64(len(b[name])))})
		}
	}
	return out, nil
}

const exportFolder = "app/AWSDynamoDB/01693685827463-2d8752fd/"

// exportOf lays out a full export of items, so many to a file (DynamoDB developer
// guide, "DynamoDB table export output format").
func exportOf(items []change.Item, each int) exported {
	b := exported{}
	sum := func(content []byte) string {
		digest := md5.Sum(content)
		return base64.StdEncoding.EncodeToString(digest[:])
	}
	var manifest strings.Builder
	for part := range slices.Chunk(items, each) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		for _, item := range part {
			_, _ = fmt.Fprintf(w, `{"Item":{"pk":{"S":%q},"sk":{"S":%q}}}`+"\n", item["pk"].Text(), item["sk"].Text())
		}
		_ = w.Close()
		name := fmt.Sprintf("%sdata/file%04d.json.gz", exportFolder, len(b))
		b[name] = packed.Bytes()
		fmt.Fprintf(&manifest, `{"itemCount":%d,"md5Checksum":%q,"etag":"0123-1","dataFileS3Key":%q}`+"\n", len(part), sum(b[name]), name)
	}
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/app"
	for name, text := range map[string]string{
		"manifest-files": manifest.String(),
		"manifest-summary": fmt.Sprintf(`{"version":"2023-08-01","exportArn":"%s/export/01693685827463-2d8752fd","startTime":"2026-11-04T07:28:34.028Z",`+
			`"endTime":"2026-11-04T07:33:43.897Z","tableArn":%q,"tableId":"12345a12-abcd-123a-ab12-1234abc12345","exportTime":"2026-11-04T07:28:34.028Z",`+
			`"s3Bucket":"exports","s3Prefix":"app","s3SseAlgorithm":"AES256","s3SseKmsKeyId":null,"manifestFilesS3Key":"%smanifest-files.json",`+
			`"billedSizeBytes":0,"itemCount":%d,"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}`, arn, arn, exportFolder, len(items)),
	} {
		b[exportFolder+name+".json"], b[exportFolder+name+".md5"] = []byte(text), []byte(sum([]byte(text)))
	}
	return b
}

// Whatever an export gives is derived anew from what it is now, under the same
// trouble as a scan; a file that is damaged is named, and the others are done.
func TestAStateMachineReplaysAnExport(t *testing.T) {
	const input = `{"source":"s3://exports/` + exportFolder + `"}`
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, clubRules, 400, 1, 4)
		if err := c.execute(`{}`); err != nil {
			t.Fatal(err)
		}
		bucket := exportOf(c.table("app"), 60)
		c.exports, c.idle = bucket, nil
		for i := range 20 { // the records go unread
			c.write("GROUP#"+fmt.Sprint(i), "METADATA", "name", "renamed")
			c.write(fmt.Sprintf("USER#%d", i), fmt.Sprintf("GROUP#%d", (i*20)%20), "role", "banned")
		}
		if len(c.drift(clubRules)) == 0 {
			t.Error("nothing is wrong that could be mended")
		}
		damaged := exportFolder + "data/file0002.json.gz"
		whole := bucket[damaged]
		bucket[damaged] = whole[:len(whole)/2]
		var failed *lambdatest.ExecutionError
		if err := c.execute(input); !errors.As(err, &failed) || failed.Name != "ReplayStuckError" ||
			!strings.Contains(failed.Cause, "file0002") || strings.Contains(failed.Cause, "file0001") {
			t.Fatalf("with a damaged file the execution ended with %v", err)
		}
		bucket[damaged] = whole
		c.trouble = true
		if err := c.execute(input); err != nil {
			t.Fatal(err)
		}
		c.holds(clubRules)
	})
}

// A file whose damage shows at its end only, and that takes longer than one invocation, is read once.
func TestADamagedFileIsGivenUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClub(t, clubRules, 400, 1, 4)
		if err := c.execute(`{}`); err != nil {
			t.Fatal(err)
		}
		bucket := exportOf(c.table("app"), 1000)
		manifest := exportFolder + "manifest-files.json"
		const ofNothing = `"md5Checksum":"1B2M2Y8AsgTpgAmY7PhCfg=="`
		bucket[manifest] = regexp.MustCompile(`"md5Checksum":"[^"]*"`).ReplaceAll(bucket[manifest], []byte(ofNothing))
		digest := md5.Sum(bucket[manifest])
		bucket[exportFolder+"manifest-files.md5"] = []byte(base64.StdEncoding.EncodeToString(digest[:]))
		c.exports, c.idle, c.limit = bucket, nil, 700*time.Millisecond
		told, invoke := 0, c.machine.Invoke
		c.machine.Invoke = func(ctx context.Context, payload []byte) ([]byte, error) {
			answer, err := invoke(ctx, payload)
			var failed *lambdatest.ExecutionError
			if errors.As(err, &failed) && failed.Name == "DamagedFileError" {
				told++
			}
			return answer, err
		}
		before := c.invocations
		var failed *lambdatest.ExecutionError
		if err := c.execute(`{"source":"s3://exports/` + exportFolder + `"}`); !errors.As(err, &failed) || failed.Name != "ReplayStuckError" {
			t.Fatalf("with a damaged file the execution ended with %v", err)
		}
		if n := c.invocations - before; n < 5 || told != 1 {
			t.Errorf("%d invocations, of which %d told of the damage, want several and 1", n, told)
		}
	})
}
