package verify

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// spool keeps things in a file: where all of a table is wrong they are as many as its items.
type spool[T any] struct {
	file  *os.File
	out   *bufio.Writer
	in    *json.Decoder
	count int64
}

func newSpool[T any](tempDir, prefix string) (*spool[T], error) {
	file, err := os.CreateTemp(tempDir, prefix)
	if err != nil {
		return nil, fmt.Errorf("making a temporary file: %w", err)
	}
	return &spool[T]{file: file, out: bufio.NewWriter(file)}, nil
}

// add writes one thing behind the others.
func (s *spool[T]) add(one T) error {
	s.count++
	if err := json.NewEncoder(s.out).Encode(one); err != nil {
		return fmt.Errorf("writing a temporary file: %w", err)
	}
	return nil
}

// rewind has next begin with the first one.
func (s *spool[T]) rewind() error {
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("writing a temporary file: %w", err)
	}
	s.in = json.NewDecoder(bufio.NewReader(io.NewSectionReader(s.file, 0, math.MaxInt64))) // it leaves the place for add alone
	return nil
}

// next returns the next ones, none at the end.
func (s *spool[T]) next(most int) ([]T, error) {
	var some []T
	for len(some) < most {
		var one T
		err := s.in.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading a temporary file: %w", err)
		}
		some = append(some, one)
	}
	return some, nil
}

func (s *spool[T]) close() error { return errors.Join(s.file.Close(), os.Remove(s.file.Name())) }
