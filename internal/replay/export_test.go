package replay_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay"
)

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
		if diff := cmp.Diff([]replay.Piece{{Name: "file00.json.gz", Items: 602}, {Name: "file01.json.gz", Items: 601}, {Name: "file02.json.gz"}},
			pieces); diff != "" || err != nil {
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

func TestAnExportAtABucketsRootIsOneHoweverItIsNamed(t *testing.T) {
	b, want := exportOf(7)
	atRoot := bucket{}
	for name, content := range b {
		atRoot[strings.TrimPrefix(name, exportRoot+exportID+"/")] = content
	}
	for _, place := range []string{"s3://exports", "s3://exports/", "s3://exports/manifest-summary.json"} {
		source := openExport(t, place, &bucketClient{bucket: atRoot})
		keys, _ := readAll(t, source, nil)
		if diff := cmp.Diff(sortedKeys(want), keys); diff != "" || source.Describe() != "export "+exportID+" in s3://exports/" {
			t.Errorf("%s is %q, keys (-want +got):\n%s", place, source.Describe(), diff)
		}
	}
}

func TestAPrefixMayEndWithASlash(t *testing.T) {
	for _, incremental := range []bool{false, true} {
		doubled := bucket{}
		for name, content := range newExport(incremental, []string{itemLine(keyOf(1))}) {
			doubled[strings.Replace(name, "/", "//", 1)] = content
		}
		for _, place := range []string{"s3://exports", "s3://exports/2026-Nov//AWSDynamoDB/" + exportID} {
			keys, _ := readAll(t, openExport(t, place, &bucketClient{bucket: doubled}), nil)
			if diff := cmp.Diff([]change.Key{keyOf(1)}, keys); diff != "" {
				t.Errorf("%s: keys (-want +got):\n%s", place, diff)
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
	moved := maps.Clone(b) // as if the files had been copied into the export's folder
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
			if failed || replay.IsDamage(err) || !errors.Is(err, io.ErrUnexpectedEOF) {
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

// TestAsManyFilesAsAreWorkedOffAtATimeStayOpen has 64 of them, which `dynamill replay --parallel` allows.
func TestAsManyFilesAsAreWorkedOffAtATimeStayOpen(t *testing.T) {
	const files = 64
	lines := make([][]string, files)
	for i := range lines {
		for n := range 1_001 {
			lines[i] = append(lines[i], itemLine(change.Key{Partition: strconv.Itoa(i), Sort: strconv.Itoa(n)}))
		}
	}
	client := &bucketClient{bucket: newExport(false, lines...)}
	source := openExport(t, "s3://exports", client)
	client.opened = 0
	pieces, err := source.Pieces(t.Context())
	if err != nil || len(pieces) != files {
		t.Fatalf("%d pieces, %v", len(pieces), err)
	}
	cursors := make([]string, files)
	for range 3 {
		for i, piece := range pieces {
			page, err := source.Read(t.Context(), piece, cursors[i])
			if err != nil {
				t.Fatal(err)
			}
			cursors[i] = page.Next
		}
	}
	if client.opened != files {
		t.Errorf("%d files were opened %d times", files, client.opened)
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
		{"file00.json.gz", "2/xyz", "is no number"},
		{"file00.json.gz", "2/00000001", "its first 2 lines are not those that were read before"},
		{"file00.json.gz", "5", "it has only 4 lines"},
	} {
		if _, err := source.Read(t.Context(), replay.Piece{Name: test.piece}, test.cursor); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("piece %q, cursor %q: %v, want %q", test.piece, test.cursor, err, test.want)
		}
	}
	for place, want := range map[string]string{"": "is empty", "s3://": "is not s3://bucket/prefix", "s3://b/c": "no client"} {
		_, err := replay.OpenExport(t.Context(), replay.FilesConfig{Place: place, Table: "app", Keys: blogKeys})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("place %q: %v, want %q", place, err, want)
		}
	}
	for refusal, want := range map[error]string{
		errors.New("no route to host"):                     "no route to host",
		&smithy.GenericAPIError{Code: "AccessDenied"}:      "the credentials lack s3:GetObject",
		&smithy.GenericAPIError{Code: "InternalErrorHere"}: "InternalErrorHere",
	} {
		client := &bucketClient{bucket: b, forbidden: exportRoot + exportID + "/manifest-files.json", refusal: refusal}
		_, err := replay.OpenExport(t.Context(), replay.FilesConfig{Place: "s3://exports", S3: client, Table: "app", Keys: blogKeys})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "manifest-files.json") {
			t.Errorf("a manifest that cannot be read: %v, want %q", err, want)
		}
	}
}

func TestAConnectionThatBreaksOnceEndsNoPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		b, _ := exportOf(1_203)
		client := &bucketClient{bucket: b}
		source := openExport(t, "s3://exports", client)
		client.cutAfter = 500
		cfg := r.process().config(source)
		cfg.Parallel = 1 // the client is not made for more
		if totals, err := replay.Run(t.Context(), cfg); err != nil || totals.Items != 1_203 || client.cutAfter != 0 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

func TestAnExportOfAnEmptyTableIsReplayed(t *testing.T) {
	for _, b := range []bucket{newExport(false), newExport(false, nil, nil), newExport(true)} {
		r := newRig(t)
		totals, err := replay.Run(t.Context(), r.process().config(openExport(t, b.inFolder(t), nil)))
		if err != nil || totals.Items != 0 || len(r.completed) != 1 {
			t.Errorf("%+v, %v, %v completed", totals, err, r.completed)
		}
	}
}
