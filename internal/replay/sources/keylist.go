package sources

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/internal/lines"
)

const (
	keyPieceLines   = 10_000
	keyProblemsMax  = 20 // named; the others are counted
	keyDigestLength = 16 // characters that tell one list from another

	// The most bytes of a key (DynamoDB developer guide, "Constraints"). DynamoDB refuses a whole page for one longer key.
	partitionBytesMax = 2048
	sortBytesMax      = 1024

	// byteOrderMark is what some editors begin a file with.
	byteOrderMark = "\ufeff"
)

// KeyListError lists the lines of a key list that are no keys.
type KeyListError struct {
	Name     string
	Problems []string // of the first ones: "line 5: ..."
	Total    int
}

func (e *KeyListError) Error() string { return strings.Join(e.Lines(), "\n") }

func (e *KeyListError) add(number int, problem error) {
	if e.Total++; e.Total <= keyProblemsMax {
		e.Problems = append(e.Problems, fmt.Sprintf("line %d: %v", number, problem))
	}
}

// Lines is the error line by line. A line break within one of them stands in the list's own text.
func (e *KeyListError) Lines() []string {
	all := []string{fmt.Sprintf("%s: %d of its lines are no keys:", e.Name, e.Total)}
	for _, problem := range e.Problems {
		all = append(all, "  "+problem)
	}
	if more := e.Total - len(e.Problems); more > 0 {
		all = append(all, fmt.Sprintf("  and %d more", more))
	}
	return all
}

// OpenKeyList opens a file of keys, one per line: as a JSON object with the table's key attributes ({"pk": "USER#1", "sk":
// "PROFILE"}, or DynamoDB's JSON), or as dynamill prints keys (USER#1/PROFILE, with "/" and "%" in them as %2F and %25).
// Blank lines are passed over. It reads the list once and names every line that is no key, as a *KeyListError.
func OpenKeyList(path string, names KeyNames) (*Files, error) {
	file, err := os.Open(path) //nolint:gosec // the user's own choice
	if err != nil {
		return nil, fmt.Errorf("opening the list of keys: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil { // of a pipe, which is read once only
		return nil, errors.Join(fmt.Errorf("opening the list of keys: %w: give a file, or keys:- for standard input", err), file.Close())
	}
	return keyList(path, names, file, file.Close)
}

// SpoolKeyList is OpenKeyList for a list that can be read once only: it copies it to a temporary file.
func SpoolKeyList(in io.Reader, name string, names KeyNames) (*Files, error) {
	file, err := os.CreateTemp("", "dynamill-keys-*")
	if err != nil {
		return nil, fmt.Errorf("copying the list of keys: %w", err)
	}
	remove := func() error { return errors.Join(file.Close(), os.Remove(file.Name())) }
	if _, err = io.Copy(file, in); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("copying the list of keys: %w", err), remove())
	}
	return keyList(name, names, file, remove)
}

var errListChanged = errors.New("it has changed since it was checked: replay it anew, as it is now")

// keyList makes a source of an open list. Its description has the content's digest: a restart may find another list.
func keyList(name string, names KeyNames, file *os.File, release func() error) (*Files, error) {
	sum := sha256.New()
	form := keyForm{names}
	parts, err := form.parts(name, io.TeeReader(file, sum))
	if err != nil {
		return nil, errors.Join(err, release())
	}
	f := &Files{text: "keys in " + name + ", " + hex.EncodeToString(sum.Sum(nil))[:keyDigestLength], release: release}
	for i, part := range parts {
		piece := Piece{Name: fmt.Sprintf("keys %d", i+1), Items: part.keys}
		f.add(piece, lines.File{
			Name: name + ", " + piece.Name, BlankLines: true,
			Open: func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(io.NewSectionReader(file, part.begin, part.size)), nil
			},
			Key: func(line []byte) (change.Key, error) {
				key, err := form.key(line)
				if err != nil {
					err = fmt.Errorf("%w: %w", err, errListChanged)
				}
				return key, err
			},
			Check: func(page lines.Page) error {
				if page.Last && page.End.Line != part.lines { // lines were added or removed
					return errListChanged
				}
				return nil
			},
		})
	}
	return f, nil
}

// keyPart is a part of a list.
type keyPart struct{ begin, size, lines, keys int64 }

// parts checks every line of a list, and divides it into parts of 10,000 keys.
func (f keyForm) parts(name string, in io.Reader) ([]keyPart, error) {
	buffered := bufio.NewReader(in)
	var part keyPart
	if head, _ := buffered.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		n, _ := buffered.Discard(len(head))
		part.begin = int64(n)
	}
	var parts []keyPart
	wrong := &KeyListError{Name: name}
	text := lines.NewReader(buffered)
	for number := 1; ; number++ {
		line, err := text.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: line %d: %w", name, number, err)
		}
		part.lines++
		part.size += int64(len(line))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if _, err := f.key(lines.TrimEnd(line)); err != nil {
			wrong.add(number, err)
		}
		if part.keys++; part.keys == keyPieceLines {
			parts = append(parts, part)
			part = keyPart{begin: part.begin + part.size}
		}
	}
	if wrong.Total > 0 {
		return nil, wrong
	}
	if part.keys > 0 {
		parts = append(parts, part)
	}
	return parts, nil
}

// ParseKey reads one key in either form that a line of a list has.
func ParseKey(text string, names KeyNames) (change.Key, error) {
	form := keyForm{names}
	if strings.TrimSpace(text) == "" {
		return change.Key{}, fmt.Errorf("it is empty: want %s", form)
	}
	return form.key([]byte(text))
}

// keyForm reads the keys of a table as people write them.
type keyForm struct{ names KeyNames }

// key reads one line.
func (f keyForm) key(line []byte) (key change.Key, err error) {
	if object := bytes.TrimSpace(line); object[0] == '{' {
		var fields lines.Fields
		if fields, err = lines.Object(object); err == nil {
			key, err = lines.KeyOf(fields, f.names)
		}
	} else {
		key, err = f.printed(string(line))
	}
	switch {
	case err != nil:
	case len(key.Partition) > partitionBytesMax:
		err = fmt.Errorf("its partition key has %d bytes, and DynamoDB's have at most %d", len(key.Partition), partitionBytesMax)
	case len(key.Sort) > sortBytesMax:
		err = fmt.Errorf("its sort key has %d bytes, and DynamoDB's have at most %d", len(key.Sort), sortBytesMax)
	}
	return key, err
}

// printed reads a key as dynamill prints it.
func (f keyForm) printed(line string) (change.Key, error) {
	key := change.ParseKey(line)
	switch {
	case !utf8.ValidString(line):
		return key, errors.New("it is not UTF-8")
	case f.names.Sort == "" && strings.Contains(line, "/"):
		return key, fmt.Errorf(`%.60q has a "/", but the table has no sort key (a "/" inside a key is written %%2F)`, line)
	case key.Partition == "" || f.names.Sort != "" && key.Sort == "":
		return key, fmt.Errorf(`%.60q is no key: want %s`, line, f.String())
	case key.String() != line:
		return key, fmt.Errorf(`%.60q is not how dynamill prints a key ("/" inside a key is %%2F, "%%" is %%25): want %s`, line, f.String())
	}
	return key, nil
}

// String shows both forms of a key.
func (f keyForm) String() string {
	if f.names.Sort == "" {
		return fmt.Sprintf(`PARTITION, or {%q: "PARTITION"}`, f.names.Partition)
	}
	return fmt.Sprintf(`PARTITION/SORT, or {%q: "PARTITION", %q: "SORT"}`, f.names.Partition, f.names.Sort)
}
