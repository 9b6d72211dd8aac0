package extsort

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// span is where a run lies in the temporary file.
type span struct {
	from    int64
	records int
}

// run reads a run, a record at a time.
type run struct {
	in        *bufio.Reader
	left      int // records behind this one
	key, data []byte
}

// compare orders runs by their records.
func (r *run) compare(other *run) int {
	return cmp.Or(bytes.Compare(r.key, other.key), bytes.Compare(r.data, other.data))
}

// advance reads the next record.
func (r *run) advance() error {
	r.left--
	for _, part := range []*[]byte{&r.key, &r.data} {
		size, err := binary.ReadUvarint(r.in)
		if err == nil {
			*part = slices.Grow((*part)[:0], int(size))[:size] //nolint:gosec // of a record that was in memory
			_, err = io.ReadFull(r.in, *part)
		}
		if err != nil {
			return fmt.Errorf("reading a temporary file: %w", err)
		}
	}
	return nil
}

// merge gives the records of all runs in order.
func (s *Sorter) merge(f func(key, data []byte) error) error {
	buffer := min(max(s.room/max(len(s.runs), 1), bufferMin), bufferMax)
	runs := make([]*run, len(s.runs))
	for i, at := range s.runs {
		part := io.NewSectionReader(s.file, at.from, s.written-at.from)
		runs[i] = &run{in: bufio.NewReaderSize(part, buffer), left: at.records}
		if err := runs[i].advance(); err != nil {
			return err
		}
	}
	slices.SortFunc(runs, (*run).compare)
	for len(runs) > 0 {
		first := runs[0]
		if err := f(first.key, first.data); err != nil {
			return err
		}
		if first.left == 0 {
			runs = runs[1:]
			continue
		}
		if err := first.advance(); err != nil {
			return err
		}
		at, _ := slices.BinarySearchFunc(runs[1:], first, (*run).compare) // runs stay sorted by their first record
		copy(runs, runs[1:at+1])
		runs[at] = first
	}
	return nil
}
