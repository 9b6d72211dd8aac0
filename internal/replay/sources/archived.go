package sources

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
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/replay/archive"
	"github.com/dynamill/dynamill/internal/replay/internal/lines"
	"github.com/dynamill/dynamill/internal/replay/objects"
)

// OpenArchive lists the files of an archive. A torn end of a file is skipped and counted.
func OpenArchive(ctx context.Context, config FilesConfig) (*Files, error) {
	in, name, err := objects.At(config.Place, config.S3)
	if err != nil {
		return nil, err
	}
	folder := objects.Within(name)
	f := &Files{text: "archive " + in.Place(name) + " of " + config.Table}
	err = in.List(ctx, folder, func(object objects.Object) error {
		piece := strings.TrimPrefix(object.Name, folder)
		is, packed := archive.IsFileOf(config.Table, path.Base(piece))
		if !is {
			return nil
		}
		f.add(Piece{Name: piece}, lines.File{
			Name: in.Place(object.Name), Gzip: packed, TornEnd: true, Key: config.archivedKey,
			Open: func(ctx context.Context) (io.ReadCloser, error) { return in.Open(ctx, object.Name) },
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the archive %s: %w", in.Place(name), err)
	}
	if len(f.pieces) == 0 {
		return nil, fmt.Errorf("there is no archive of table %q in %s: no file whose name ends in .ndjson or .ndjson.gz lies there", config.Table,
			in.Place(name))
	}
	slices.SortFunc(f.pieces, func(a, b Piece) int { return cmp.Compare(a.Name, b.Name) })
	return f, nil
}

// archivedKey takes the key out of a record as Lambda has it.
func (c FilesConfig) archivedKey(line []byte) (change.Key, error) {
	fields, err := lines.Object(line)
	if err != nil {
		return change.Key{}, err
	}
	var source string
	if raw, ok := fields["eventSourceARN"]; ok {
		if err := json.Unmarshal(raw, &source); err != nil {
			return change.Key{}, errors.New("its eventSourceARN is no text")
		}
	}
	if table := attributes.TableOf(source); source != "" && table != c.Table {
		return change.Key{}, fmt.Errorf("it is a record of another table: of %s, not of %q", source, c.Table)
	}
	body, err := lines.Object(fields["dynamodb"])
	if err != nil {
		return change.Key{}, errors.New(`it has no member "dynamodb" as a stream record has`)
	}
	keys, err := lines.Object(body["Keys"])
	if err != nil {
		return change.Key{}, errors.New("it has no dynamodb.Keys")
	}
	key, err := lines.KeyOf(keys, c.Keys)
	if err != nil {
		return change.Key{}, fmt.Errorf("dynamodb.Keys: %w", err)
	}
	return key, nil
}
