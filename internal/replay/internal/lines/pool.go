package lines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dynamill/dynamill/change"
)

// File is a file of lines.
type File struct {
	Name string // what people call it
	Open func(ctx context.Context) (io.ReadCloser, error)
	Gzip bool
	// TornEnd allows a last line, or last block of gzip, that breaks off, as a killed writer leaves it.
	TornEnd bool
	// BlankLines allows lines without a key. Page.Lines does not count them.
	BlankLines bool
	// Key takes the key out of a line.
	Key func(line []byte) (change.Key, error)
	// Check says what is wrong with the file as a page shows it; nil: any file will do. Earlier pages stay valid.
	Check func(Page) error
}

// Page is what some lines of a file give.
type Page struct {
	Keys    []change.Key
	Lines   int64  // with a key, or a last line that breaks off; a torn gzip block is in Skipped alone
	Skipped int64  // lines that break off
	End     Place  // behind the last line read
	Last    bool   // the file ends there
	MD5     []byte // of the file as it lies there; with Last only
}

// Place is one between two lines of a file.
type Place struct {
	Line int64  // the number of the line before, from 1; 0 at the beginning
	Sum  uint32 // of all lines before, by which the file is recognised; 0: any file will do
}

// String writes a place as text that ParsePlace reads.
func (p Place) String() string { return fmt.Sprintf("%d/%08x", p.Line, p.Sum) }

// ParsePlace reads a place, also one without a sum; "" is the beginning.
func ParsePlace(text string) (p Place, err error) {
	if text == "" {
		return p, nil
	}
	line, sum, summed := strings.Cut(text, "/")
	p.Line, err = strconv.ParseInt(line, 10, 64)
	if err == nil && summed {
		var n uint64
		n, err = strconv.ParseUint(sum, 16, 32)
		p.Sum = uint32(n) //nolint:gosec // of 32 bits
	}
	if err != nil || p.Line < 0 {
		return Place{}, fmt.Errorf("cursor %q is no number of lines", text)
	}
	return p, nil
}

// openMax bounds a Pool's open files, about 200 KB each. More are never worked off at a time.
const openMax = 128

// Pool reads files page by page, for several callers and in any order. It keeps files open between pages: unpacking one anew
// for each page would take time that grows with the square of its length. The zero Pool is ready for use.
type Pool struct {
	mu   sync.Mutex
	open []*stream // the longest waiting first
}

// Read reads up to linesMax lines behind a place. Wrong content is a *ContentError that names file and line.
func (p *Pool) Read(ctx context.Context, file File, after Place, linesMax int) (Page, error) {
	if ctx.Err() != nil {
		return Page{}, context.Cause(ctx)
	}
	if s := p.take(file.Name, after); s != nil {
		page, err := p.read(ctx, s, after, linesMax)
		var content *ContentError
		if err == nil || errors.As(err, &content) || ctx.Err() != nil {
			return page, err
		}
		// A connection that waited for long may have been closed at its other end.
	}
	s, err := openStream(ctx, file)
	if err != nil {
		return Page{}, fmt.Errorf("%s: %w", file.Name, err)
	}
	return p.read(ctx, s, after, linesMax)
}

func (p *Pool) read(ctx context.Context, s *stream, after Place, linesMax int) (page Page, err error) {
	stop := context.AfterFunc(ctx, s.cancel)
	defer func() {
		switch {
		case !stop() || err != nil || page.Last:
			s.close()
		default:
			p.put(s)
		}
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	if err := s.skip(after); err != nil {
		return Page{}, fmt.Errorf("%s: %w", s.Name, err)
	}
	for page.Lines < int64(linesMax) && !page.Last {
		number := s.line + 1
		if err := s.step(&page); err != nil {
			return Page{}, fmt.Errorf("%s: line %d: %w", s.Name, number, err)
		}
	}
	page.End = s.place()
	if page.Last {
		page.MD5 = s.sum.Sum(nil)
	}
	if s.Check != nil {
		if err := s.Check(page); err != nil {
			return Page{}, &ContentError{fmt.Errorf("%s: %w", s.Name, err)}
		}
	}
	return page, nil
}

// step reads one line into the page.
func (s *stream) step(page *Page) error {
	text, ended, err := s.next()
	switch {
	case errors.Is(err, io.EOF):
		page.Last = true
		return nil
	case errors.Is(err, errTorn) && s.TornEnd:
		page.Last = true
		page.Skipped++
		return nil
	case err != nil:
		return err
	}
	page.Last = !ended // what a writer may add from now on is the rest of this line
	if s.BlankLines && len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	key, err := s.Key(text)
	switch {
	case err != nil && !ended && s.TornEnd:
		page.Skipped++
	case err != nil:
		return &ContentError{err}
	default:
		page.Keys = append(page.Keys, key)
	}
	page.Lines++
	return nil
}

func (p *Pool) take(name string, at Place) *stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, waiting := range p.open {
		if waiting.Name == name && waiting.place() == at {
			p.open = slices.Delete(p.open, i, i+1)
			return waiting
		}
	}
	return nil
}

func (p *Pool) put(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) == openMax {
		p.open[0].close()
		p.open = slices.Delete(p.open, 0, 1)
	}
	p.open = append(p.open, s)
}

// Close closes what is open. The Pool may be used further.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, waiting := range p.open {
		waiting.close()
	}
	p.open = nil
}
