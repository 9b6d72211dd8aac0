package extsort

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// add sums the data of keys that begin with "sum".
func add(key, a, b []byte) ([]byte, bool) {
	if !strings.HasPrefix(string(key), "sum") {
		return nil, false
	}
	x, _ := strconv.Atoi(string(a))
	y, _ := strconv.Atoi(string(b))
	return []byte(strconv.Itoa(x + y)), true
}

func TestTornTemporaryFileHasAnErrorOfItsOwn(t *testing.T) {
	for name, size := range map[string]int64{"empty": 0, "within a record": 100} {
		s, err := New(t.TempDir(), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if err := s.Add(fmt.Appendf(nil, "key %d", i), []byte("data")); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(s.spill(), s.file.Truncate(size)); err != nil {
			t.Fatal(err)
		}
		err = s.Each(func(_, _ []byte) error { return nil })
		if !errors.Is(err, errTorn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			t.Errorf("%s: Each returned %v; want errTorn", name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestManyRunsComeBackSortedAndCombined(t *testing.T) {
	folder := t.TempDir()
	s, err := New(folder, 0, add)
	if err != nil {
		t.Fatal(err)
	}
	s.room = 2 << 10 // runs of a few dozen records
	r := rand.New(rand.NewPCG(1, 2))
	var want []string
	total := map[string]int{}
	for i := range 20_000 {
		key := fmt.Sprintf("k%d", r.IntN(5000))
		if i%3 == 0 {
			key = fmt.Sprintf("sum%d", r.IntN(20))
			total[key] += i
		} else {
			want = append(want, fmt.Sprintf("%s=%d", key, i))
		}
		if err := s.Add([]byte(key), []byte(strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.runs) < 300 {
		t.Fatalf("%d runs: the test wants more", len(s.runs))
	}
	for key, n := range total {
		want = append(want, fmt.Sprintf("%s=%d", key, n))
	}
	var got []string
	last := ""
	if err := s.Each(func(key, data []byte) error {
		if string(key) < last {
			t.Fatalf("%s comes behind %s", key, last)
		}
		last = string(key)
		got = append(got, fmt.Sprintf("%s=%s", key, data))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("%d records come back, %d were wanted, or others", len(got), len(want))
	}
	if s.Written() == 0 {
		t.Error("nothing was written to files")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v (%v)", left, err)
	}
}

func TestATornFileIsAnError(t *testing.T) {
	s, err := New(t.TempDir(), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 10 {
		if err := s.Add([]byte{byte(i)}, []byte("some data")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.spill(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.file.Name(), 50); err != nil {
		t.Fatal(err)
	}
	if err := s.Each(func(_, _ []byte) error { return nil }); err == nil {
		t.Error("a file that ends within a record was taken for whole")
	}
}

func TestAppendedTextsSortAsTheTextsAndReadBack(t *testing.T) {
	text := rapid.StringMatching("[ab\x00\x01]{0,4}")
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		x, y := AppendText(nil, a), AppendText(nil, b)
		if strings.Compare(a, b) != strings.Compare(string(x), string(y)) {
			t.Fatalf("%q and %q sort otherwise than %q and %q", x, y, a, b)
		}
		back, rest, ok := CutText(append(x, "rest"...))
		if !ok || back != a || string(rest) != "rest" {
			t.Fatalf("%q reads back as %q, %q, %v", a, back, rest, ok)
		}
	})
}

// TestRecordsAreWrittenOnceAndRunsShareTheMemory has 200 runs: with a buffer of 64 KB
// each, merging them would take 13 MB.
func TestRecordsAreWrittenOnceAndRunsShareTheMemory(t *testing.T) {
	s, err := New(t.TempDir(), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	memory := s.room
	s.room = 2 << 10
	records := 0
	for ; len(s.runs) < 200; records++ {
		if err := s.Add(fmt.Appendf(nil, "%08d", records), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	s.room = memory
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := s.Each(func(_, _ []byte) error { records--; return nil }); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > uint64(memory)+256<<10 {
		t.Errorf("merging took %d KB of memory, want about %d", used>>10, memory>>10)
	}
	info, err := s.file.Stat()
	if err != nil || info.Size() != s.Written() || records != 0 {
		t.Errorf("%d bytes were written to a file of %d, and %d records are lost (%v)", s.Written(), info.Size(), records, err)
	}
}
