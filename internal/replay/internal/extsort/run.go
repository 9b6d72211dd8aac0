package extsort

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// runWriter writes one run: for each record the lengths of key and data, then both.
type runWriter struct {
	file  *os.File
	out   *bufio.Writer
	head  []byte
	bytes int64
}

func createRun(name string) (*runWriter, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making a temporary file: %w", err)
	}
	return &runWriter{file: file, out: bufio.NewWriterSize(file, bufferBytes)}, nil
}

func (w *runWriter) write(key, data []byte) error {
	w.head = appendSize(appendSize(w.head[:0], len(key)), len(data))
	for _, part := range [...][]byte{w.head, key, data} {
		n, err := w.out.Write(part)
		w.bytes += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *runWriter) close() error { return errors.Join(w.out.Flush(), w.file.Close()) }

// runReader reads one run, a record at a time.
type runReader struct {
	file      *os.File
	in        *bufio.Reader
	key, data []byte
}

func openRun(name string) (*runReader, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening a temporary file: %w", err)
	}
	return &runReader{file: file, in: bufio.NewReaderSize(file, bufferBytes)}, nil
}

// advance reads the next record; io.EOF at the end.
func (r *runReader) advance() error {
	keyLen, err := binary.ReadUvarint(r.in)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	var dataLen uint64
	if err == nil {
		dataLen, err = binary.ReadUvarint(r.in)
	}
	if err == nil {
		r.key, err = readBytes(r.in, r.key, keyLen)
	}
	if err == nil {
		r.data, err = readBytes(r.in, r.data, dataLen)
	}
	if err != nil {
		return fmt.Errorf("reading a temporary file: %w", noEOF(err))
	}
	return nil
}

// noEOF tells a file that ends within a record from one that ends behind it.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func readBytes(in io.Reader, into []byte, n uint64) ([]byte, error) {
	if uint64(cap(into)) < n {
		into = make([]byte, n)
	}
	into = into[:n]
	_, err := io.ReadFull(in, into)
	return into, err
}

// merge reads several runs as one.
type merge struct {
	runs    []*runReader // a heap by key and data
	current *runReader   // gave the last record; still to be advanced
}

func openMerge(names []string) (*merge, error) {
	m := &merge{}
	for _, name := range names {
		r, err := openRun(name)
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.runs = append(m.runs, r)
		if err := r.advance(); err != nil {
			return nil, errors.Join(err, m.close())
		}
	}
	heap.Init(m)
	return m, nil
}

// next returns the next record, good until it is called again; io.EOF at the end.
func (m *merge) next() (key, data []byte, err error) {
	if m.current != nil {
		switch err := m.current.advance(); {
		case errors.Is(err, io.EOF):
			r := heap.Pop(m).(*runReader)
			if err := r.file.Close(); err != nil {
				return nil, nil, err
			}
		case err != nil:
			return nil, nil, err
		default:
			heap.Fix(m, 0)
		}
		m.current = nil
	}
	if len(m.runs) == 0 {
		return nil, nil, io.EOF
	}
	m.current = m.runs[0]
	return m.current.key, m.current.data, nil
}

func (m *merge) close() error {
	var all error
	for _, r := range m.runs {
		all = errors.Join(all, r.file.Close())
	}
	m.runs = nil
	return all
}

// Len is part of heap.Interface.
func (m *merge) Len() int { return len(m.runs) }

// Less is part of heap.Interface.
func (m *merge) Less(i, j int) bool {
	if c := bytes.Compare(m.runs[i].key, m.runs[j].key); c != 0 {
		return c < 0
	}
	return bytes.Compare(m.runs[i].data, m.runs[j].data) < 0
}

// Swap is part of heap.Interface.
func (m *merge) Swap(i, j int) { m.runs[i], m.runs[j] = m.runs[j], m.runs[i] }

// Push is part of heap.Interface.
func (m *merge) Push(x any) { m.runs = append(m.runs, x.(*runReader)) }

// Pop is part of heap.Interface.
func (m *merge) Pop() any {
	last := len(m.runs) - 1
	r := m.runs[last]
	m.runs = m.runs[:last]
	return r
}
