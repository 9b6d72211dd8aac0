package sources_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
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

func TestAFullExportGivesItsKeysWhereverOnePoints(t *testing.T) {
	b, want := exportsim.OfItems(1_203)
	root := b.InFolder(t)
	for _, place := range []string{
		"s3://exports/" + exportsim.Root + exportsim.ID, "s3://exports/" + exportsim.Root + exportsim.ID + "/",
		"s3://exports/2026-Nov/AWSDynamoDB",
		"s3://exports/2026-Nov", "s3://exports", "s3://exports/" + exportsim.Root + exportsim.ID + "/manifest-summary.json",
		filepath.Join(root, exportsim.Root, exportsim.ID), filepath.Join(root, exportsim.Root), root,
		filepath.Join(root, exportsim.Root, exportsim.ID, "manifest-summary.json"),
	} {
		open := func() sources.Source { return openExport(t, place, &exportsim.Client{Bucket: b}) }
		source := open()
		if !strings.HasPrefix(source.Describe(), "export ") || !strings.HasSuffix(source.Describe(), "/AWSDynamoDB/"+exportsim.ID) {
			t.Errorf("%s is described as %q", place, source.Describe())
		}
		pieces, err := source.Pieces(t.Context())
		if diff := cmp.Diff([]sources.Piece{{Name: "file00.json.gz", Items: 602}, {Name: "file01.json.gz", Items: 601}, {Name: "file02.json.gz"}},
			pieces); diff != "" || err != nil {
			t.Errorf("%s: pieces (-want +got):\n%s%v", place, diff, err)
		}
		for _, begun := range []func() sources.Source{nil, open} {
			keys, sum := readAll(t, source, begun)
			if diff := cmp.Diff(sortedKeys(want), keys); diff != "" || sum.Items != 1_203 {
				t.Fatalf("%s: %d items, keys (-want +got):\n%s", place, sum.Items, diff)
			}
		}
	}
}

func TestAnExportAtABucketsRootIsOneHoweverItIsNamed(t *testing.T) {
	b, want := exportsim.OfItems(7)
	atRoot := exportsim.Bucket{}
	for name, content := range b {
		atRoot[strings.TrimPrefix(name, exportsim.Root+exportsim.ID+"/")] = content
	}
	for _, place := range []string{"s3://exports", "s3://exports/", "s3://exports/manifest-summary.json"} {
		source := openExport(t, place, &exportsim.Client{Bucket: atRoot})
		keys, _ := readAll(t, source, nil)
		if diff := cmp.Diff(sortedKeys(want), keys); diff != "" || source.Describe() != "export "+exportsim.ID+" in s3://exports/" {
			t.Errorf("%s is %q, keys (-want +got):\n%s", place, source.Describe(), diff)
		}
	}
}

func TestAPrefixMayEndWithASlash(t *testing.T) {
	key := change.Key{Partition: "p1", Sort: "a"}
	for _, incremental := range []bool{false, true} {
		doubled := exportsim.Bucket{}
		for name, content := range exportsim.New(incremental, []string{exportsim.ItemLine(key)}) {
			doubled[strings.Replace(name, "/", "//", 1)] = content
		}
		for _, place := range []string{"s3://exports", "s3://exports/2026-Nov//AWSDynamoDB/" + exportsim.ID} {
			keys, _ := readAll(t, openExport(t, place, &exportsim.Client{Bucket: doubled}), nil)
			if diff := cmp.Diff([]change.Key{key}, keys); diff != "" {
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
	b := exportsim.New(true, lines[:1], lines[1:])
	b[exportsim.Root+"data/ofanotherexport.json.gz"] = []byte("not of this one")
	moved := maps.Clone(b) // as if the files had been copied into the export's folder
	for name, content := range b {
		if rest, ok := strings.CutPrefix(name, exportsim.Root+"data/"); ok {
			moved[exportsim.Root+exportsim.ID+"/data/"+rest] = content
			delete(moved, name)
		}
	}
	for _, b := range []exportsim.Bucket{b, moved} {
		folder := filepath.Join(b.InFolder(t), exportsim.Root, exportsim.ID)
		for _, place := range []string{"s3://exports/" + exportsim.Root + exportsim.ID, folder} {
			source := openExport(t, place, &exportsim.Client{Bucket: b})
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
	b, _ := exportsim.OfItems(6_000)
	client := &exportsim.Client{Bucket: b, CutAfter: 0}
	source := openExport(t, "s3://exports", client)
	piece := sources.Piece{Name: "file00.json.gz"}
	client.CutAfter = 2_000
	var cursor string
	read, failed := 0, false
	for last := false; !last; {
		page, err := source.Read(t.Context(), piece, cursor)
		if err != nil {
			if failed || sources.IsDamage(err) || !errors.Is(err, io.ErrUnexpectedEOF) {
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
	b, _ := exportsim.OfItems(6_000)
	client := &exportsim.Client{Bucket: b}
	source := openExport(t, "s3://exports", client)
	client.Opened = 0
	readAll(t, source, nil)
	if client.Opened != 3 {
		t.Errorf("3 files were opened %d times", client.Opened)
	}
}

// TestAsManyFilesAsAreWorkedOffAtATimeStayOpen has 64 of them, which `dynamill replay --parallel` allows.
func TestAsManyFilesAsAreWorkedOffAtATimeStayOpen(t *testing.T) {
	const files = 64
	lines := make([][]string, files)
	for i := range lines {
		for n := range 1_001 {
			lines[i] = append(lines[i], exportsim.ItemLine(change.Key{Partition: strconv.Itoa(i), Sort: strconv.Itoa(n)}))
		}
	}
	client := &exportsim.Client{Bucket: exportsim.New(false, lines...)}
	source := openExport(t, "s3://exports", client)
	client.Opened = 0
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
	if client.Opened != files {
		t.Errorf("%d files were opened %d times", files, client.Opened)
	}
}

func TestAPageIsReadThoughTheOneBeforeWasStopped(t *testing.T) {
	b, want := exportsim.OfItems(1_200)
	source := openExport(t, "s3://exports", &exportsim.Client{Bucket: b})
	piece := sources.Piece{Name: "file00.json.gz"}
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
	b, _ := exportsim.OfItems(7)
	source := openExport(t, "s3://exports", &exportsim.Client{Bucket: b})
	for _, test := range []struct{ piece, cursor, want string }{
		{"file99.json.gz", "", "is no piece of export"},
		{"file00.json.gz", "x", "is no number"},
		{"file00.json.gz", "-1", "is no number"},
		{"file00.json.gz", "2/xyz", "is no number"},
		{"file00.json.gz", "2/00000001", "its first 2 lines are not those that were read before"},
		{"file00.json.gz", "5", "it has only 4 lines"},
	} {
		if _, err := source.Read(t.Context(), sources.Piece{Name: test.piece}, test.cursor); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("piece %q, cursor %q: %v, want %q", test.piece, test.cursor, err, test.want)
		}
	}
	for place, want := range map[string]string{"": "is empty", "s3://": "is not s3://bucket/prefix", "s3://b/c": "no client"} {
		_, err := sources.OpenExport(t.Context(), sources.FilesConfig{Place: place, Table: "app", Keys: blogKeys})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("place %q: %v, want %q", place, err, want)
		}
	}
	for refusal, want := range map[error]string{
		errors.New("no route to host"):                     "no route to host",
		&smithy.GenericAPIError{Code: "AccessDenied"}:      "the credentials lack s3:GetObject",
		&smithy.GenericAPIError{Code: "InternalErrorHere"}: "InternalErrorHere",
	} {
		client := &exportsim.Client{Bucket: b, Forbidden: exportsim.Root + exportsim.ID + "/manifest-files.json", Refusal: refusal}
		_, err := sources.OpenExport(t.Context(), sources.FilesConfig{Place: "s3://exports", S3: client, Table: "app", Keys: blogKeys})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "manifest-files.json") {
			t.Errorf("a manifest that cannot be read: %v, want %q", err, want)
		}
	}
}
