// Package extsort sorts more records than memory holds: sorted runs in
// temporary files, which are merged. It imports nothing of the module.
package extsort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Combine makes one record's data of two with the same key; false leaves both.
type Combine func(key, a, b []byte) ([]byte, bool)

const (
	runsMax     = 48       // runs of one level; as many are merged into one of the next
	bufferBytes = 64 << 10 // of each file that is read or written
	memoryMin   = 1 << 20
	slotBytes   = 16 // of a record's place in memory, beside its bytes
)

// Sorter takes records and gives them back sorted by key. Add may be called by several at once.
type Sorter struct {
	folder  string // of its own, below the one given; "" after Close
	combine Combine
	arena   []byte
	slots   []slot
	room    int // bytes for arena and slots
	levels  [][]string
	files   int
	written int64
	mu      sync.Mutex
}

type slot struct{ at, keyLen, dataLen uint32 }

// New makes a sorter that holds about so many bytes in memory and keeps its
// runs in a new folder below tempDir ("" is the system's). Close it to have them removed.
func New(tempDir string, memoryBytes int, combine Combine) (*Sorter, error) {
	folder, err := os.MkdirTemp(tempDir, "dynamill-sort-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for temporary files: %w", err)
	}
	return &Sorter{folder: folder, combine: combine, room: max(memoryBytes, memoryMin)}, nil
}

// Add takes one record. Neither slice is kept.
func (s *Sorter) Add(key, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arena == nil {
		s.arena = make([]byte, 0, s.room*3/4)
		s.slots = make([]slot, 0, s.room/4/slotBytes)
	}
	if len(s.arena)+len(key)+len(data) > cap(s.arena) || len(s.slots) == cap(s.slots) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	at := len(s.arena)
	s.arena = append(append(s.arena, key...), data...)
	s.slots = append(s.slots, slot{uint32(at), uint32(len(key)), uint32(len(data))})
	return nil
}

// Written is how many bytes went to temporary files so far.
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
	next := 0
	name, err := s.writeRun(func() ([]byte, []byte, error) {
		if next == len(s.slots) {
			return nil, nil, io.EOF
		}
		next++
		return s.key(s.slots[next-1]), s.data(s.slots[next-1]), nil
	})
	if err != nil {
		return err
	}
	s.arena, s.slots = s.arena[:0], s.slots[:0]
	return s.keep(name, 0)
}

// keep puts a run on its level, and merges the level where it is full.
func (s *Sorter) keep(name string, level int) error {
	if level == len(s.levels) {
		s.levels = append(s.levels, nil)
	}
	s.levels[level] = append(s.levels[level], name)
	if len(s.levels[level]) < runsMax {
		return nil
	}
	names := s.levels[level]
	merged, err := s.mergeRuns(names)
	if err != nil {
		return err
	}
	s.levels[level] = nil
	return s.keep(merged, level+1)
}

func (s *Sorter) mergeRuns(names []string) (merged string, err error) {
	m, err := openMerge(names)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if merged, err = s.writeRun(m.next); err != nil {
		return "", err
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			return "", fmt.Errorf("removing a temporary file: %w", err)
		}
	}
	return merged, nil
}

// writeRun writes sorted records to a new file, combining those of one key.
func (s *Sorter) writeRun(next func() (key, data []byte, err error)) (string, error) {
	s.files++
	name := filepath.Join(s.folder, fmt.Sprintf("run-%06d", s.files))
	w, err := createRun(name)
	if err != nil {
		return "", err
	}
	err = combined(s.combine, next, w.write)
	s.written += w.bytes
	if err = errors.Join(err, w.close()); err != nil {
		return "", fmt.Errorf("writing a temporary file: %w", err)
	}
	return name, nil
}

// Each gives all records in the order of their keys, those of one key combined
// as far as they can be. The slices are good until f returns. Nothing can be added afterwards.
func (s *Sorter) Each(f func(key, data []byte) error) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.spill(); err != nil {
		return err
	}
	s.arena, s.slots = nil, nil
	for level, runs := range s.levels { // the small ones first, and no more than must be
		if len(slices.Concat(s.levels...)) <= runsMax {
			break
		}
		if len(runs) < 2 {
			continue
		}
		merged, err := s.mergeRuns(runs)
		if err != nil {
			return err
		}
		s.levels[level] = []string{merged}
	}
	m, err := openMerge(slices.Concat(s.levels...))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	return combined(s.combine, m.next, f)
}

// Close removes the temporary files. It may be called more than once.
func (s *Sorter) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arena, s.slots = nil, nil
	if s.folder == "" {
		return nil
	}
	folder := s.folder
	s.folder = ""
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing temporary files: %w", err)
	}
	return nil
}

// combined passes records on, those of one key made one where they can be.
func combined(combine Combine, next func() ([]byte, []byte, error), f func(key, data []byte) error) error {
	var key, data []byte
	held := false
	for {
		k, d, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if held && combine != nil && bytes.Equal(k, key) {
			if sum, ok := combine(key, data, d); ok {
				data = append(data[:0], sum...)
				continue
			}
		}
		if held {
			if err := f(key, data); err != nil {
				return err
			}
		}
		held, key, data = true, append(key[:0], k...), append(data[:0], d...)
	}
	if held {
		return f(key, data)
	}
	return nil
}

// AppendText appends a text so that what is appended sorts as the texts do,
// whatever follows, and reads back.
func AppendText(to []byte, text string) []byte {
	for i := range len(text) {
		if to = append(to, text[i]); text[i] == 0 {
			to = append(to, 0xff)
		}
	}
	return append(to, 0, 1)
}

// CutText reads what AppendText wrote, and returns what follows it.
func CutText(from []byte) (text string, rest []byte, ok bool) {
	var out []byte
	for i := 0; i+1 < len(from); i++ {
		if from[i] != 0 {
			out = append(out, from[i])
			continue
		}
		if from[i+1] == 1 {
			return string(out), from[i+2:], true
		}
		out = append(out, 0)
		i++
	}
	return "", nil, false
}

func appendSize(to []byte, n int) []byte { return binary.AppendUvarint(to, uint64(n)) }
