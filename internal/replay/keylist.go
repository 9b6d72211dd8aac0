package replay

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
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/replay/internal/lines"
)

const (
	keyPieceLines   = 10_000
	keyProblemsMax  = 20 // named; the others are counted
	keyDigestLength = 16 // characters that tell one list from another

	// How long keys may be, in bytes (DynamoDB developer guide, "Constraints"). DynamoDB
	// refuses to look for longer ones, and with them for all others of a page.
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

// KeyList is the source of the keys in a file, one per line: as a JSON object
// that has the table's key attributes ({"pk": "USER#1", "sk": "PROFILE"}, in
// plain JSON or DynamoDB's, other members are passed over), or as dynamill
// prints keys (USER#1/PROFILE, with "/" and "%" in them as %2F and %25).
// A line that begins with "{" is JSON. Empty lines are passed over.
type KeyList struct {
	name   string
	digest string
	names  KeyNames
	file   *os.File
	spool  bool // the file is a copy that goes with Close
	pieces []Piece
	begins []int64 // of each piece, in bytes, and the end of the last
}

// OpenKeyList reads a key list through once, so that every line that is no key
// is named at once, as a *KeyListError.
func OpenKeyList(path string, names KeyNames) (*KeyList, error) {
	file, err := os.Open(path) //nolint:gosec // the user's own choice
	if err != nil {
		return nil, fmt.Errorf("opening the list of keys: %w", err)
	}
	return checkedKeyList(&KeyList{name: path, names: names, file: file})
}

// SpoolKeyList is OpenKeyList for a list that can be read once only, such as
// standard input: it is copied to a temporary file.
func SpoolKeyList(in io.Reader, name string, names KeyNames) (*KeyList, error) {
	file, err := os.CreateTemp("", "dynamill-keys-*")
	if err != nil {
		return nil, fmt.Errorf("copying the list of keys: %w", err)
	}
	l := &KeyList{name: name, names: names, file: file, spool: true}
	if _, err := io.Copy(file, in); err != nil {
		return nil, errors.Join(fmt.Errorf("copying the list of keys: %w", err), l.Close())
	}
	return checkedKeyList(l)
}

func checkedKeyList(l *KeyList) (*KeyList, error) {
	if err := l.check(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// check reads every line, and notes where the pieces begin.
func (l *KeyList) check() error {
	if _, err := l.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading %s: %w", l.name, err)
	}
	sum := sha256.New()
	wrong := &KeyListError{Name: l.name}
	number, offset, keys := 0, int64(0), int64(0)
	text := bufio.NewReader(io.TeeReader(l.file, sum))
	if head, _ := text.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		n, _ := text.Discard(len(head))
		offset = int64(n)
	}
	l.begins = []int64{offset}
	endPiece := func() {
		l.pieces = append(l.pieces, Piece{Name: fmt.Sprintf("keys %d", len(l.pieces)+1), Items: keys})
		l.begins = append(l.begins, offset)
		keys = 0
	}
	err := eachLine(text, func(line []byte, size int64) bool {
		number++
		offset += size
		switch _, has, err := l.key(line); {
		case err != nil:
			if wrong.Total++; wrong.Total <= keyProblemsMax {
				wrong.Problems = append(wrong.Problems, fmt.Sprintf("line %d: %v", number, err))
			}
		case has:
			keys++
		}
		if keys == keyPieceLines {
			endPiece()
		}
		return true
	})
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: line %d: %w", l.name, number+1, err)
	case wrong.Total > 0:
		return wrong
	}
	if keys > 0 || len(l.pieces) == 0 {
		endPiece()
	}
	l.begins[len(l.pieces)] = offset // empty lines at the end belong to no piece else
	l.digest = hex.EncodeToString(sum.Sum(nil))[:keyDigestLength]
	return nil
}

// eachLine calls do with each line, and with its size including its end, until do returns false.
func eachLine(in io.Reader, do func(line []byte, size int64) bool) error {
	text := lines.NewReader(in)
	for {
		line, err := text.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !do(lines.TrimEnd(line), int64(len(line))) {
			return nil
		}
	}
}

// key reads one line.
func (l *KeyList) key(line []byte) (key change.Key, has bool, err error) {
	blank := bytes.TrimSpace(line)
	switch {
	case len(blank) == 0:
		return change.Key{}, false, nil
	case blank[0] == '{':
		var fields lines.Fields
		if fields, err = lines.Object(blank); err == nil {
			key, err = lines.PlainKeyOf(fields, l.names)
		}
	default:
		key, err = l.printed(string(line))
	}
	switch {
	case err != nil:
	case len(key.Partition) > partitionBytesMax:
		err = fmt.Errorf("its partition key has %d bytes, and DynamoDB's have at most %d", len(key.Partition), partitionBytesMax)
	case len(key.Sort) > sortBytesMax:
		err = fmt.Errorf("its sort key has %d bytes, and DynamoDB's have at most %d", len(key.Sort), sortBytesMax)
	}
	return key, err == nil, err
}

// printed reads a key as dynamill prints it.
func (l *KeyList) printed(line string) (change.Key, error) {
	key := change.ParseKey(line)
	switch {
	case !utf8.ValidString(line):
		return key, errors.New("it is not UTF-8")
	case l.names.Sort == "" && strings.Contains(line, "/"):
		return key, fmt.Errorf(`%.60q has a "/", but the table has no sort key (a "/" inside a key is written %%2F)`, line)
	case key.Partition == "" || l.names.Sort != "" && key.Sort == "":
		return key, fmt.Errorf(`%.60q is no key: want %s`, line, l.form())
	case key.String() != line:
		return key, fmt.Errorf(`%.60q is not how dynamill prints a key ("/" inside a key is %%2F, "%%" is %%25): want %s`, line, l.form())
	}
	return key, nil
}

// form shows both forms of a key.
func (l *KeyList) form() string {
	if l.names.Sort == "" {
		return fmt.Sprintf(`PARTITION, or {%q: "PARTITION"}`, l.names.Partition)
	}
	return fmt.Sprintf(`PARTITION/SORT, or {%q: "PARTITION", %q: "SORT"}`, l.names.Partition, l.names.Sort)
}

// Describe names the file and, since it may hold something else after a restart, its content.
func (l *KeyList) Describe() string { return "keys in " + l.name + ", " + l.digest }

// Pieces lists parts of 10,000 keys.
func (l *KeyList) Pieces(context.Context) ([]Piece, error) { return l.pieces, nil }

var errListChanged = errors.New("it has changed since it was checked: replay it anew, as it is now")

// Read reads some keys of a part. Its cursors count bytes.
func (l *KeyList) Read(ctx context.Context, piece Piece, cursor string) (Page, error) {
	var number int
	if n, err := fmt.Sscanf(piece.Name, "keys %d", &number); n != 1 || err != nil || number < 1 || number > len(l.pieces) {
		return Page{}, fmt.Errorf("%q is no piece of %s", piece.Name, l.Describe())
	}
	begin, end := l.begins[number-1], l.begins[number]
	if cursor != "" {
		at, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil {
			return Page{}, fmt.Errorf("cursor %q is no number of bytes", cursor)
		}
		if at < begin || at > end {
			return Page{}, fmt.Errorf("cursor %q is not within piece %q of %s", cursor, piece.Name, l.Describe())
		}
		begin = at
	}
	if ctx.Err() != nil {
		return Page{}, context.Cause(ctx)
	}
	var page Page
	var failed error
	err := eachLine(io.NewSectionReader(l.file, begin, end-begin), func(line []byte, size int64) bool {
		key, has, err := l.key(line)
		if err != nil {
			failed = fmt.Errorf("%w: %w", err, errListChanged)
			return false
		}
		begin += size
		if has {
			page.Keys = append(page.Keys, key)
			page.Items++
		}
		return len(page.Keys) < piece.pageMax()
	})
	if failed == nil && begin < end && len(page.Keys) < piece.pageMax() { // it is shorter than it was
		failed = errListChanged
	}
	if err = errors.Join(err, failed); err != nil {
		return Page{}, fmt.Errorf("reading %s: %w", l.name, err)
	}
	page.Next, page.Last = strconv.FormatInt(begin, 10), begin >= end
	return page, nil
}

// Close closes the file, and removes it if it was a copy.
func (l *KeyList) Close() error {
	err := l.file.Close()
	if l.spool {
		err = errors.Join(err, os.Remove(l.file.Name()))
	}
	return err
}
