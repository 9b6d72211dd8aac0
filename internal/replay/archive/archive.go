// Package archive keeps stream records in files: one per line, in the JSON of Lambda's events. It imports change and
// internal/dynamojson.
//
// A record is on disk before it is reported as done, so none is missing; one that comes again after a crash is there twice.
// No file is written after a failure or by another process, so only its last line may be torn.
package archive

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
)

// The bounds of a file.
const (
	fileBytesMaxDefault = 256 << 20
	filePeriod          = time.Hour
)

// Config says what is archived and where.
type Config struct {
	Dir                   string // made if it is missing
	StreamARN             string // arn:...:table/NAME/stream/LABEL
	PartitionKey, SortKey string // the table's key attributes; SortKey is "" without one
	Gzip                  bool
	FileBytesMax          int64 // of a file's text; 0: 256 MB
}

// Writer writes the archive of one process. It is safe for concurrent use.
type Writer struct {
	config Config
	table  string

	mu   sync.Mutex
	next *batch // takes what is written while another one goes to disk

	disk sync.Mutex
	file *file // guarded by disk; nil: none is open
}

// batch is what goes to disk at once.
type batch struct {
	text    []byte // guarded by Writer.mu until the batch is written
	written sync.Once
	err     error
}

// file is one that is being written.
type file struct {
	*os.File
	out    io.Writer
	zip    *gzip.Writer // nil: plain
	opened time.Time
	bytes  int64 // of text
}

// Open makes a Writer. It makes the folder and tries whether it can write there.
func Open(config Config) (*Writer, error) {
	table := attributes.TableOf(config.StreamARN)
	if table == "" {
		return nil, fmt.Errorf("%q is no stream's ARN", config.StreamARN)
	}
	config.FileBytesMax = cmp.Or(max(config.FileBytesMax, 0), fileBytesMaxDefault)
	if err := os.MkdirAll(config.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("making the archive's folder: %w", err)
	}
	probe, err := os.CreateTemp(config.Dir, ".probe-")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return nil, fmt.Errorf("writing to the archive's folder: %w", err)
	}
	return &Writer{config: config, table: table, next: &batch{}}, nil
}

const (
	fileTime = "20060102T150405Z"
	plainEnd = ".ndjson"
	gzipEnd  = ".ndjson.gz"
)

var fileForm = regexp.MustCompile(`^(.+)-\d{8}T\d{6}Z-[0-9a-f]{16}\.ndjson(\.gz)?$`)

// IsFileOf reports whether a file may belong to a table's archive by its name, and whether it is packed by gzip.
func IsFileOf(table, name string) (is, packed bool) {
	if form := fileForm.FindStringSubmatch(name); form != nil && form[1] != table {
		return false, false
	}
	packed = strings.HasSuffix(name, gzipEnd)
	return packed || strings.HasSuffix(name, plainEnd), packed
}

// Write returns when the records are on disk. Concurrent calls share a wait for the disk.
func (w *Writer) Write(records []change.Record) error {
	text, err := w.config.encode(records)
	if err != nil {
		return err
	}
	w.mu.Lock()
	b := w.next
	b.text = append(b.text, text...)
	w.mu.Unlock()
	b.written.Do(func() { // the first caller writes for all; the others wait here
		w.disk.Lock()
		defer w.disk.Unlock()
		w.mu.Lock()
		w.next = &batch{}
		w.mu.Unlock()
		b.err = w.write(b.text)
	})
	return b.err
}

// write brings a text to disk, after an error to a new file. The caller holds disk.
func (w *Writer) write(text []byte) error {
	f, err := w.current()
	if err != nil {
		return err
	}
	n, err := f.out.Write(text)
	f.bytes += int64(n)
	if err == nil && f.zip != nil {
		err = f.zip.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		w.file = nil
		_ = f.Close() // err says more
	}
	return err
}

// current returns the file to write to. The caller holds disk.
func (w *Writer) current() (f *file, err error) {
	if f = w.file; f != nil && f.bytes < w.config.FileBytesMax && time.Since(f.opened) < filePeriod {
		return f, nil
	}
	if err = w.finish(); err == nil {
		w.file, err = w.create()
	}
	return w.file, err
}

func (w *Writer) create() (*file, error) {
	now, end := time.Now(), plainEnd
	if w.config.Gzip {
		end = gzipEnd
	}
	name := fmt.Sprintf("%s-%s-%016x%s", w.table, now.UTC().Format(fileTime), rand.Uint64(), end) //nolint:gosec // no secret
	opened, err := os.OpenFile(filepath.Join(w.config.Dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return nil, err
	}
	if err := syncFolder(w.config.Dir); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	f := &file{File: opened, out: opened, opened: now}
	if w.config.Gzip {
		f.zip = gzip.NewWriter(opened)
		f.out = f.zip
	}
	return f, nil
}

// syncFolder brings the names in a folder to disk, on file systems that can.
func syncFolder(path string) error {
	folder, err := os.Open(path) //nolint:gosec // the user's own choice
	if err != nil {
		return err
	}
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, folder.Close())
}

// finish ends the file that is being written. The caller holds disk.
func (w *Writer) finish() (err error) {
	f := w.file
	if w.file = nil; f == nil {
		return nil
	}
	if f.zip != nil {
		err = f.zip.Close()
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// Close ends the file that is being written.
func (w *Writer) Close() error {
	w.disk.Lock()
	defer w.disk.Unlock()
	return w.finish()
}

// Processor is what records are for: a projections.Engine.
type Processor interface {
	Process(ctx context.Context, records []change.Record) (done int, err error)
}

// Recorder is a Processor that archives what another one has done before it says so.
type Recorder struct {
	Processor
	Writer *Writer
}

// Process hands the records on, and archives those that are done.
func (r Recorder) Process(ctx context.Context, records []change.Record) (int, error) {
	done, err := r.Processor.Process(ctx, records)
	if done > 0 {
		if failed := r.Writer.Write(records[:done]); failed != nil {
			return 0, &WriteError{r.Writer.config.Dir, failed}
		}
	}
	return done, err
}

// WriteError says that records could not be archived. They come again.
type WriteError struct {
	Dir    string
	Reason error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("the archive in %s cannot be written: %v; the records that it lacks are not checkpointed, "+
		"so make it writable and start again, or start without it", e.Dir, e.Reason)
}

func (e *WriteError) Unwrap() error { return e.Reason }

// StopReading tells the stream reader that trying again is of no use.
func (*WriteError) StopReading() bool { return true }
