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

// locate finds the files where the export lies now: a full export has its own data folder, incremental exports to a prefix
// share one, and a copy may have either.
func (e *Export) locate(ctx context.Context) error {
	missing := make(map[string]*File, len(e.Files))
	for i := range e.Files {
		missing[e.Files[i].Name] = &e.Files[i]
	}
	for _, folder := range []string{objects.Within(e.folder) + dataFolder, objects.Within(folderOf(e.folder)) + dataFolder} {
		if len(missing) == 0 {
			return nil
		}
		err := e.objects.List(ctx, objects.Within(folder), func(object objects.Object) error {
			name := path.Base(object.Name)
			file := missing[name]
			if file == nil || folderOf(object.Name) != folder {
				return nil
			}
			file.object = object.Name
			delete(missing, name)
			if object.Size == 0 && file.Items > 0 {
				e.wrong.add(e.objects.Place(object.Name), "it is empty, but has %d items by %s", file.Items, filesName)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("listing the files of export %s: %w", e.objects.Place(e.folder), err)
		}
	}
	for _, file := range e.Files {
		if missing[file.Name] != nil {
			e.wrong.add(e.objects.Place(objects.Within(e.folder)+dataFolder+"/"+file.Name), "it is missing")
		}
	}
	return nil
}

// Lines is a file of the export as it is read.
func (e *Export) Lines(file File, names lines.KeyNames) lines.File {
	return lines.File{
		Name: e.objects.Place(file.object), Gzip: strings.HasSuffix(file.Name, ".gz"), Check: file.check,
		Open: func(ctx context.Context) (io.ReadCloser, error) { return e.objects.Open(ctx, file.object) },
		Key:  func(line []byte) (change.Key, error) { return keyOf(line, names) },
	}
}

// check says whether a page shows that the file is not the one that was exported.
func (f File) check(page lines.Page) error {
	switch {
	case page.End.Line > f.Items || page.Last && page.End.Line < f.Items:
		return fmt.Errorf("it has %d items by %s, and other than that many lines", f.Items, filesName)
	case page.Last && !bytes.Equal(page.MD5, f.md5):
		return fmt.Errorf("its checksum is not that of %s: it is damaged, or another file", filesName)
	}
	return nil
}

// keyOf takes the key out of a line of a full export, {"Item": {...}}, or of an incremental one, {"Keys": {...}, ...}, where
// deleted items have theirs too.
func keyOf(line []byte, names lines.KeyNames) (change.Key, error) {
	fields, err := lines.Object(line)
	if err != nil {
		return change.Key{}, err
	}
	for _, name := range []string{"Keys", "Item"} {
		raw, ok := fields[name]
		if !ok {
			continue
		}
		var key change.Key
		item, err := lines.Object(raw)
		if err == nil {
			key, err = lines.KeyOf(item, names)
		}
		if err != nil {
			return change.Key{}, fmt.Errorf("%s: %w", name, err)
		}
		return key, nil
	}
	return change.Key{}, errors.New("it has neither Item nor Keys")
}
