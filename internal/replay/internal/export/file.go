package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/internal/lines"
	"github.com/dynamill/dynamill/internal/replay/objects"
)

// locate finds the files where the export lies now. The manifest has the names
// that they were written under: a full export's lie in its own folder, those of
// all incremental exports to a prefix in one that they share. Copied
// exports may have theirs in either.
func (e *Export) locate(ctx context.Context, found *problems) error {
	missing := make(map[string]*File, len(e.Files))
	for i := range e.Files {
		missing[e.Files[i].Name] = &e.Files[i]
	}
	for _, folder := range []string{within(e.folder) + dataFolder, within(folderOf(e.folder)) + dataFolder} {
		if len(missing) == 0 {
			return nil
		}
		err := e.objects.List(ctx, within(folder), func(object objects.Object) error {
			name := path.Base(object.Name)
			file := missing[name]
			if file == nil || folderOf(object.Name) != folder {
				return nil
			}
			file.object = object.Name
			delete(missing, name)
			if object.Size == 0 && file.Items > 0 {
				found.add(e.objects.Place(object.Name), "it is empty, but has %d items by %s", file.Items, filesName)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("listing the files of export %s: %w", e.objects.Place(e.folder), err)
		}
	}
	for _, file := range e.Files {
		if missing[file.Name] != nil {
			found.add(e.objects.Place(within(e.folder)+dataFolder+"/"+file.Name), "it is missing")
		}
	}
	return nil
}

// Read reads up to linesMax lines of a file behind a place. The last page of a file
// that is not the one that was exported is an *Error: the keys in the pages before
// are those of items all the same.
func (e *Export) Read(ctx context.Context, pool *lines.Pool, file File, names lines.KeyNames, after lines.Place, linesMax int) (lines.Page,
	error) {
	place := e.objects.Place(file.object)
	page, err := pool.Read(ctx, lines.File{
		Name: place, Gzip: strings.HasSuffix(file.Name, ".gz"),
		Open: func(ctx context.Context) (io.ReadCloser, error) { return e.objects.Open(ctx, file.object) },
		Key:  func(line []byte) (change.Key, bool, error) { return keyOf(line, names) },
	}, after, linesMax)
	var content *lines.ContentError
	switch {
	case errors.As(err, &content):
		return lines.Page{}, &Error{e.objects.Place(e.folder), problems{err.Error()}}
	case err != nil:
		return lines.Page{}, err
	case page.End.Line > file.Items || page.Last && page.End.Line < file.Items:
		err = fmt.Errorf("%s: it has %d items by %s, and other than that many lines", place, file.Items, filesName)
	case page.Last && !bytes.Equal(page.MD5, file.md5):
		err = fmt.Errorf("%s: its checksum is not that of %s: it is damaged, or another file", place, filesName)
	}
	if err != nil {
		return lines.Page{}, &Error{e.objects.Place(e.folder), problems{err.Error()}}
	}
	return page, nil
}

// keyOf takes the key out of a line of a full export, {"Item": {...}}, or of an
// incremental one, {"Metadata": ..., "Keys": {...}, "OldImage": ..., "NewImage": ...}.
// Deleted items have no NewImage; their keys count as well.
func keyOf(line []byte, names lines.KeyNames) (change.Key, bool, error) {
	fields, err := lines.Object(line)
	if err != nil {
		return change.Key{}, false, err
	}
	for _, name := range []string{"Keys", "Item"} {
		raw, ok := fields[name]
		if !ok {
			continue
		}
		item, err := lines.Object(raw)
		if err != nil {
			return change.Key{}, false, fmt.Errorf("%s: %w", name, err)
		}
		key, err := lines.KeyOf(item, names)
		if err != nil {
			return change.Key{}, false, fmt.Errorf("%s: %w", name, err)
		}
		return key, true, nil
	}
	return change.Key{}, false, errors.New("it has neither Item nor Keys")
}
