package lines

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/md5" //nolint:gosec // DynamoDB's exports are checked by it
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strings"
)

const (
	// lineMax is that of an export with two images of 400 KB, each control character as six bytes of JSON.
	lineMax    = 8 << 20
	bufferSize = 64 << 10
	gzipMagic  = "\x1f\x8b"
)

var errLineTooLong = fmt.Errorf("it is longer than %d MB", lineMax>>20)

// Reader reads lines, of which it holds one at a time.
type Reader struct {
	in   *bufio.Reader
	long []byte // of lines longer than the buffer
}

// NewReader returns a Reader of all that in has.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, bufferSize)} }

// Next returns the next line with its line break, which the last line may lack; io.EOF after the last line. The line is
// valid until the next call.
func (r *Reader) Next() ([]byte, error) {
	r.long = r.long[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		if len(r.long)+len(part) > lineMax {
			return nil, errLineTooLong
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			r.long = append(r.long, part...)
			continue
		}
		if len(r.long) > 0 {
			r.long = append(r.long, part...)
			part = r.long
		}
		if err == nil || errors.Is(err, io.EOF) && len(part) > 0 {
			return part, nil
		}
		return nil, err
	}
}

// TrimEnd takes the end off a line.
func TrimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// stream is an open file, read up to behind some line.
type stream struct {
	File
	body   *body
	sum    hash.Hash
	text   *Reader
	line   int64  // lines read
	read   uint32 // sum of the lines read
	cancel context.CancelFunc
}

// body tells an error of the delivery of a file from one of its content.
type body struct {
	io.ReadCloser
	failed error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	return n, err
}

// openStream opens a file that lives on when ctx ends: the next page may need it.
func openStream(ctx context.Context, file File) (*stream, error) {
	living, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	opened, err := file.Open(living)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &stream{File: file, body: &body{ReadCloser: opened}, sum: md5.New(), cancel: cancel} //nolint:gosec // see the import
	text := io.TeeReader(s.body, s.sum)
	if file.Gzip {
		text = unpack(bufio.NewReaderSize(text, bufferSize))
	}
	s.text = NewReader(text)
	return s, nil
}

// unpack is gzip.NewReader, except that a few bytes that are not gzip are an error of the format: gzip.NewReader
// takes them for a file that breaks off. An empty file has no line.
func unpack(packed *bufio.Reader) io.Reader {
	if begin, _ := packed.Peek(len(gzipMagic)); !strings.HasPrefix(gzipMagic, string(begin)) {
		return failing{gzip.ErrHeader}
	}
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return failing{err}
	}
	return unpacked
}

// failing is a reader of nothing but an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// errTorn is the end of a file that breaks off.
var errTorn = errors.New("it breaks off")

// next returns the next line without its end until the next call, and whether it has one; io.EOF behind the last line.
func (s *stream) next() (text []byte, ended bool, err error) {
	line, err := s.text.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, false, io.EOF
	case err != nil:
		return nil, false, s.judged(err)
	}
	s.line++
	s.read = crc32.Update(s.read, crc32.IEEETable, line)
	return TrimEnd(line), bytes.HasSuffix(line, []byte("\n")), nil
}

// ContentError says that what is in a file is wrong, not how it was delivered.
type ContentError struct{ Reason error }

func (e *ContentError) Error() string { return e.Reason.Error() }
func (e *ContentError) Unwrap() error { return e.Reason }

// judged makes a ContentError of an error that is no fault of the delivery.
func (s *stream) judged(err error) error {
	var flated flate.CorruptInputError
	switch {
	case s.body.failed != nil:
		return s.body.failed
	case errors.Is(err, errLineTooLong):
		return &ContentError{err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &ContentError{errTorn}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &flated):
		return &ContentError{fmt.Errorf("it is not gzip, or damaged: %w", err)}
	}
	return err
}

func (s *stream) place() Place { return Place{s.line, s.read} }

// skip reads over the lines before a place, which tell whether it is one of this file.
func (s *stream) skip(to Place) error {
	for s.line < to.Line {
		_, _, err := s.next()
		if errors.Is(err, io.EOF) {
			return &ContentError{fmt.Errorf("it has only %d lines, and %d of it were read before: it is another file now", s.line, to.Line)}
		}
		if err != nil {
			return err
		}
	}
	if to.Sum != 0 && s.read != to.Sum {
		return &ContentError{fmt.Errorf("its first %d lines are not those that were read before: it is another file now", to.Line)}
	}
	return nil
}

func (s *stream) close() {
	s.cancel()
	_ = s.body.Close() // it was only read
}
