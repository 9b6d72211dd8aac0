package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynamill/dynamill/internal/replay/internal/export"
	"github.com/dynamill/dynamill/internal/replay/internal/lines"
	"github.com/dynamill/dynamill/internal/replay/objects"
)

// ExportError lists everything that is wrong with an export: files that are missing or damaged.
type ExportError = export.Error

// ExportConfig says where an export lies and what it is of.
type ExportConfig struct {
	// Place is s3://bucket/prefix or a path: of the export's folder, of one above it
	// that holds this export only, or of its manifest-summary.json.
	Place string
	S3    objects.S3Client // nil unless Place is on S3
	Table string           // the name of the table that it must be of
	Keys  KeyNames
}

// Export is the source of the keys in an export of the table to S3, full or
// incremental. Its files are its pieces.
type Export struct {
	export *export.Export
	names  lines.KeyNames
	files  map[string]export.File
	pool   lines.Pool
}

// OpenExport reads the manifests of an export and looks whether its files are
// there. What is wrong comes as an *ExportError; checksums of the files are
// compared while they are read, since that takes reading all of them.
func OpenExport(ctx context.Context, config ExportConfig) (*Export, error) {
	in, name, err := objects.At(config.Place, config.S3)
	if err != nil {
		return nil, err
	}
	opened, err := export.Open(ctx, in, name, config.Table)
	if err != nil {
		return nil, err
	}
	e := &Export{export: opened, names: lines.KeyNames(config.Keys), files: map[string]export.File{}}
	for _, file := range opened.Files {
		e.files[file.Name] = file
	}
	return e, nil
}

// Describe names the export and where it lies.
func (e *Export) Describe() string { return e.export.Describe() }

// Pieces lists the export's files in the order of its manifest.
func (e *Export) Pieces(context.Context) ([]Piece, error) {
	pieces := make([]Piece, len(e.export.Files))
	for i, file := range e.export.Files {
		pieces[i] = Piece{Name: file.Name, Items: file.Items}
	}
	return pieces, nil
}

// Read reads some lines of a file. A file that is damaged is an *ExportError, at
// the latest with its last page; the keys that were read of it before do no harm.
func (e *Export) Read(ctx context.Context, piece Piece, cursor string) (Page, error) {
	file, ok := e.files[piece.Name]
	if !ok {
		return Page{}, fmt.Errorf("%q is no piece of %s", piece.Name, e.Describe())
	}
	after, err := lines.ParsePlace(cursor)
	if err != nil {
		return Page{}, fmt.Errorf("%s of %s: %w", piece.Name, e.Describe(), err)
	}
	page, err := e.export.Read(ctx, &e.pool, file, e.names, after, piece.pageMax())
	return pageOf(page), err
}

// Close closes what was kept open for further pages.
func (e *Export) Close() error {
	e.pool.Close()
	return nil
}

// IsDamage reports whether what lies in a file of an export or archive is wrong, not
// how it was delivered: no other attempt helps until the file is mended.
func IsDamage(err error) bool {
	var (
		export  *ExportError
		content *lines.ContentError
	)
	return errors.As(err, &export) || errors.As(err, &content)
}

// pageOf makes a Page, whose cursor is the place behind the last line read.
func pageOf(page lines.Page) Page {
	return Page{Keys: page.Keys, Items: page.Lines, Skipped: page.Skipped, Next: page.End.String(), Last: page.Last}
}
