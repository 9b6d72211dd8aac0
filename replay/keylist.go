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

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/replay/internal/lines"
)

const (
	keyPieceLines   = 10_000
	keyLineMax      = 1 << 20 // bytes; a line may be a whole item, as long as its like
	keyProblemsMax  = 20      // named; the others are counted
	keyDigestLength = 16      // characters that tell one list from another
)

// KeyListError lists the lines of a key list that are no keys.
type KeyListError struct {
	Name     string
	Problems []string // of the first ones: "line 5: ..."
	Total    int
}

func (e *KeyListError) Error() string {
	text := fmt.Sprintf("%s: %d of its lines are no keys:\n  %s", e.Name, e.Total, strings.Join(e.Problems, "\n  "))
	if more := e.Total - len(e.Problems); more > 0 {
		text += fmt.Sprintf("\n  and %d more", more)
	}
	return text
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
	endPiece := func() {
		l.pieces = append(l.pieces, Piece{Name: fmt.Sprintf("keys %d", len(l.pieces)+1), Items: keys})
		l.begins = append(l.begins, offset)
		keys = 0
	}
	l.begins = []int64{0}
	err := eachLine(io.TeeReader(l.file, sum), func(line []byte, size int64) bool {
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
	l.digest = hex.EncodeToString(sum.Sum(nil))[:keyDigestLength]
	return nil
}

var errKeyLineTooLong = fmt.Errorf("it is longer than %d KB", keyLineMax>>10)

// eachLine calls do with each line, and with its size including its end, until do returns false.
func eachLine(in io.Reader, do func(line []byte, size int64) bool) error {
	text := bufio.NewReaderSize(in, keyLineMax)
	for {
		line, err := text.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return errKeyLineTooLong
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 && !do(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), int64(len(line))) || err != nil {
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
		fields, err := lines.Object(blank)
		if err != nil {
			return change.Key{}, false, err
		}
		key, err = lines.PlainKeyOf(fields, lines.KeyNames(l.names))
		return key, true, err
	}
	key = change.ParseKey(string(line))
	switch {
	case l.names.Sort == "" && bytes.IndexByte(line, '/') >= 0:
		return change.Key{}, false, fmt.Errorf(`%.60q has a "/", but the table has no sort key (a "/" inside a key is written %%2F)`, line)
	case key.Partition == "" || l.names.Sort != "" && key.Sort == "":
		return change.Key{}, false, fmt.Errorf(`%.60q is no key: want %s`, line, l.form())
	case key.String() != string(line):
		return change.Key{}, false, fmt.Errorf(`%.60q is not how dynamill prints a key ("/" inside a key is %%2F, "%%" is %%25): want %s`, line, l.form())
	}
	return key, true, nil
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

// Read reads some keys of a part. Its cursors count bytes.
func (l *KeyList) Read(ctx context.Context, piece Piece, cursor string) (Page, error) {
	var number int
	if n, err := fmt.Sscanf(piece.Name, "keys %d", &number); n != 1 || err != nil || number < 1 || number > len(l.pieces) {
		return Page{}, fmt.Errorf("%q is no piece of %s", piece.Name, l.Describe())
	}
	begin, end := l.begins[number-1], l.begins[number]
	if number == len(l.pieces) {
		info, err := l.file.Stat()
		if err != nil {
			return Page{}, fmt.Errorf("reading %s: %w", l.name, err)
		}
		end = info.Size() // empty lines at the end belong to no piece else
	}
	if cursor != "" {
		at, err := parseCount(cursor)
		if err != nil {
			return Page{}, err
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
			failed = fmt.Errorf("%w: it has changed since it was checked", err)
			return false
		}
		begin += size
		if has {
			page.Keys = append(page.Keys, key)
			page.Items++
		}
		return len(page.Keys) < piece.pageMax()
	})
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
