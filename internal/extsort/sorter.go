// Package extsort sorts more records than memory holds. It imports nothing of the module.
package extsort

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// Combine makes one record's data of two with the same key; false leaves both.
type Combine func(key, a, b []byte) ([]byte, bool)

const (
	memoryMin = 1 << 20
	memoryMax = 1<<31 - 1 // the place of a record has 32 bits
	slotBytes = 16        // bound of one slot's memory (12 bytes now), beside the record's bytes
	// arenaFirst is what a sorter takes at first. It doubles up to its part of the room: a small table needs no more.
	arenaFirst = 64 << 10

	// All runs are merged at once and share the memory: with the smallest buffers 32 MB merge 8,000 runs, or 200 GB.
	bufferMin = 4 << 10
	bufferMax = 64 << 10
)

// Sorter takes records and gives them back sorted by key. Add may be called by several at once.
type Sorter struct {
	combine Combine
	room    int // bytes for arena and slots, and then for the buffers of runs
	mu      sync.Mutex
	arena   []byte
	slots   []slot
	file    *os.File // nil after Close
	out     *bufio.Writer
	record  []byte // that is being written
	written int64
	runs    []span
}

type slot struct{ at, keyLen, dataLen uint32 }

// New makes a sorter with about so many bytes in memory. Close removes its file in tempDir ("" is the system's).
func New(tempDir string, memoryBytes int, combine Combine) (*Sorter, error) {
	file, err := os.CreateTemp(tempDir, "dynamill-sort-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary file: %w", err)
	}
	room := min(max(memoryBytes, memoryMin), memoryMax)
	return &Sorter{file: file, out: bufio.NewWriterSize(file, bufferMax), combine: combine, room: room}, nil
}

// Add takes one record. Neither slice is kept.
func (s *Sorter) Add(key, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := len(key) + len(data)
	if len(s.arena)+size > s.room*3/4 || len(s.slots) == s.room/4/slotBytes {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.arena = grown(s.arena, size, arenaFirst, s.room*3/4)
	s.slots = grown(s.slots, 1, arenaFirst/slotBytes, s.room/4/slotBytes)
	at := len(s.arena)
	s.arena = append(append(s.arena, key...), data...)
	s.slots = append(s.slots, slot{uint32(at), uint32(len(key)), uint32(len(data))})
	return nil
}

// grown returns all with room for more elements. It doubles the capacity, up to most, and exceeds most only if the elements do.
func grown[T any](all []T, more, first, most int) []T {
	need := len(all) + more
	if need <= cap(all) {
		return all
	}
	return append(make([]T, 0, max(need, min(max(first, 2*cap(all)), most))), all...)
}

// Written is how many bytes went to the temporary file so far.
func (s *Sorter) Written() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

func (s *Sorter) key(sl slot) []byte { return s.arena[sl.at : sl.at+sl.keyLen] }

func (s *Sorter) data(sl slot) []byte {
	at := sl.at + sl.keyLen
	return s.arena[at : at+sl.dataLen]
}

// spill writes what is in memory as a run.
func (s *Sorter) spill() error {
	if len(s.slots) == 0 {
		return nil
	}
	slices.SortFunc(s.slots, func(a, b slot) int {
		return cmp.Or(bytes.Compare(s.key(a), s.key(b)), bytes.Compare(s.data(a), s.data(b)))
	})
	run := span{from: s.written}
	records := combiner{combine: s.combine, to: func(key, data []byte) error {
		run.records++
		return s.write(key, data)
	}}
	for _, sl := range s.slots {
		if err := records.add(s.key(sl), s.data(sl)); err != nil {
			return fmt.Errorf("writing a temporary file: %w", err)
		}
	}
	if err := errors.Join(records.end(), s.out.Flush()); err != nil {
		return fmt.Errorf("writing a temporary file: %w", err)
	}
	s.runs = append(s.runs, run)
	s.arena, s.slots = s.arena[:0], s.slots[:0]
	return nil
}

// write writes a record: key and data, each behind its length.
func (s *Sorter) write(key, data []byte) error {
	s.record = append(binary.AppendUvarint(s.record[:0], uint64(len(key))), key...)
	s.record = append(binary.AppendUvarint(s.record, uint64(len(data))), data...)
	n, err := s.out.Write(s.record)
	s.written += int64(n)
	return err
}

// Each gives all records sorted by key, those of one key combined if possible. The slices are good until f returns.
func (s *Sorter) Each(f func(key, data []byte) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.spill(); err != nil {
		return err
	}
	s.arena, s.slots = nil, nil
	records := combiner{combine: s.combine, to: f}
	if err := s.merge(records.add); err != nil {
		return err
	}
	return records.end()
}

// Close removes the temporary file. It may be called more than once.
func (s *Sorter) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arena, s.slots = nil, nil
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	if err := errors.Join(file.Close(), os.Remove(file.Name())); err != nil {
		return fmt.Errorf("removing a temporary file: %w", err)
	}
	return nil
}

// combiner passes sorted records on, those of one key made one where they can be.
type combiner struct {
	combine   Combine
	to        func(key, data []byte) error
	key, data []byte
	held      bool
}

func (c *combiner) add(key, data []byte) error {
	if c.held && c.combine != nil && bytes.Equal(key, c.key) {
		if sum, ok := c.combine(key, c.data, data); ok {
			c.data = append(c.data[:0], sum...)
			return nil
		}
	}
	err := c.end()
	c.held, c.key, c.data = true, append(c.key[:0], key...), append(c.data[:0], data...)
	return err
}

// end passes the last record on.
func (c *combiner) end() error {
	if !c.held {
		return nil
	}
	c.held = false
	return c.to(c.key, c.data)
}

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

// errTorn wraps neither io.EOF nor io.ErrUnexpectedEOF: callers take those for a broken answer of a server.
var errTorn = errors.New("it is torn: it ends before its last record does")

// advance reads the next record.
func (r *run) advance() error {
	r.left--
	for _, part := range []*[]byte{&r.key, &r.data} {
		size, err := binary.ReadUvarint(r.in)
		if err == nil {
			*part = slices.Grow((*part)[:0], int(size))[:size] //nolint:gosec // of a record that was in memory
			_, err = io.ReadFull(r.in, *part)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errTorn
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
