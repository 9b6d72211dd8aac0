package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/archive"
	"github.com/dynamill/dynamill/internal/replay/internal/lines"
	"github.com/dynamill/dynamill/internal/replay/objects"
)

// ArchiveConfig says where an archive of stream records lies and what it is of.
type ArchiveConfig struct {
	Place string           // a folder that `dynamill run --archive` wrote to, or s3://bucket/prefix with a copy of it
	S3    objects.S3Client // nil unless Place is on S3
	Table string           // the name of the table that its records must be of
	Keys  KeyNames
}

// Archive is the source of the keys in archived stream records. Its files are
// its pieces: those that are there when it is opened.
type Archive struct {
	place   string
	objects objects.Objects
	table   string
	names   lines.KeyNames
	pieces  []Piece
	files   map[string]string // objects by piece
	pool    lines.Pool
}

// OpenArchive lists the files of an archive.
func OpenArchive(ctx context.Context, config ArchiveConfig) (*Archive, error) {
	in, name, err := objects.At(config.Place, config.S3)
	if err != nil {
		return nil, err
	}
	folder := strings.TrimSuffix(name, "/") + "/"
	if name == "" {
		folder = ""
	}
	a := &Archive{place: in.Place(name), objects: in, table: config.Table, names: lines.KeyNames(config.Keys), files: map[string]string{}}
	err = in.List(ctx, folder, func(object objects.Object) error {
		piece := strings.TrimPrefix(object.Name, folder)
		if is, _ := archive.IsFileOf(config.Table, path.Base(piece)); is {
			a.files[piece] = object.Name
			a.pieces = append(a.pieces, Piece{Name: piece})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the archive %s: %w", a.place, err)
	}
	if len(a.pieces) == 0 {
		return nil, fmt.Errorf("there is no archive of table %q in %s: no file whose name ends in .ndjson or .ndjson.gz lies there", config.Table,
			a.place)
	}
	slices.SortFunc(a.pieces, func(a, b Piece) int { return cmp.Compare(a.Name, b.Name) })
	return a, nil
}

// Describe names the archive's place.
func (a *Archive) Describe() string { return "archive " + a.place + " of " + a.table }

// Pieces lists the archive's files.
func (a *Archive) Pieces(context.Context) ([]Piece, error) { return slices.Clone(a.pieces), nil }

// Read reads some records of a file. What a killed process left torn at its end
// is skipped and counted; any other line that cannot be read is an error that names it.
func (a *Archive) Read(ctx context.Context, piece Piece, cursor string) (Page, error) {
	name, ok := a.files[piece.Name]
	if !ok {
		return Page{}, fmt.Errorf("%q is no piece of %s", piece.Name, a.Describe())
	}
	after, err := lines.ParsePlace(cursor)
	if err != nil {
		return Page{}, fmt.Errorf("%s of %s: %w", piece.Name, a.Describe(), err)
	}
	_, packed := archive.IsFileOf(a.table, path.Base(piece.Name))
	page, err := a.pool.Read(ctx, lines.File{
		Name: a.objects.Place(name), Gzip: packed, TornEnd: true, Key: a.keyOf,
		Open: func(ctx context.Context) (io.ReadCloser, error) { return a.objects.Open(ctx, name) },
	}, after, piece.pageMax())
	return pageOf(page), err
}

// keyOf takes the key out of a record as Lambda has it.
func (a *Archive) keyOf(line []byte) (change.Key, bool, error) {
	fields, err := lines.Object(line)
	if err != nil {
		return change.Key{}, false, err
	}
	var source string
	if raw, ok := fields["eventSourceARN"]; ok {
		if err := json.Unmarshal(raw, &source); err != nil {
			return change.Key{}, false, errors.New("its eventSourceARN is no text")
		}
	}
	if table := archive.TableOf(source); source != "" && table != a.table {
		return change.Key{}, false, fmt.Errorf("it is a record of another table: of %s, not of %q", source, a.table)
	}
	body, err := lines.Object(fields["dynamodb"])
	if err != nil {
		return change.Key{}, false, errors.New(`it has no member "dynamodb" as a stream record has`)
	}
	keys, err := lines.Object(body["Keys"])
	if err != nil {
		return change.Key{}, false, errors.New("it has no dynamodb.Keys")
	}
	key, err := lines.KeyOf(keys, a.names)
	if err != nil {
		return change.Key{}, false, fmt.Errorf("dynamodb.Keys: %w", err)
	}
	return key, true, nil
}

// Close closes what was kept open for further pages.
func (a *Archive) Close() error {
	a.pool.Close()
	return nil
}
