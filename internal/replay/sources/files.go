package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dynamill/dynamill/internal/replay/internal/export"
	"github.com/dynamill/dynamill/internal/replay/internal/lines"
	"github.com/dynamill/dynamill/internal/replay/objects"
)

// FilesConfig says where an export or an archive lies and what it is of.
type FilesConfig struct {
	// Place is s3://bucket/prefix or a path. Of an export: its folder, one above it that holds no other, or its
	// manifest-summary.json. Of an archive: a folder that `dynamill run --archive` wrote to, or a copy of it.
	Place string
	S3    objects.S3Client // nil unless Place is on S3
	Table string           // the name of the table that it must be of
	Keys  KeyNames
}

// Files is the source of the keys in files of lines. Its pieces are the files, or parts of one, at its opening.
type Files struct {
	text    string // of Describe
	pieces  []Piece
	files   map[string]lines.File // by piece
	pool    lines.Pool
	release func() error // nil: nothing but the pool is to be closed
}

func (f *Files) add(piece Piece, file lines.File) {
	if f.files == nil {
		f.files = map[string]lines.File{}
	}
	f.pieces, f.files[piece.Name] = append(f.pieces, piece), file
}

// Describe names what the files are of, and where they lie.
func (f *Files) Describe() string { return f.text }

// Pieces lists the files: those of an export in the order of its manifest.
func (f *Files) Pieces(context.Context) ([]Piece, error) { return slices.Clone(f.pieces), nil }

// Read reads some lines of a file. IsDamage recognises damage of it, at the latest at its last page.
func (f *Files) Read(ctx context.Context, piece Piece, cursor string) (Page, error) {
	file, ok := f.files[piece.Name]
	if !ok {
		return Page{}, fmt.Errorf("%q is no piece of %s", piece.Name, f.text)
	}
	after, err := lines.ParsePlace(cursor)
	if err != nil {
		return Page{}, fmt.Errorf("%s of %s: %w", piece.Name, f.text, err)
	}
	page, err := f.pool.Read(ctx, file, after, piece.pageMax())
	return Page{Keys: page.Keys, Items: page.Lines, Skipped: page.Skipped, Next: page.End.String(), Last: page.Last}, err
}

// Close closes what was kept open for further pages, and removes the copy of a list.
func (f *Files) Close() error {
	f.pool.Close()
	if f.release == nil {
		return nil
	}
	return f.release()
}

// ExportError lists everything that is wrong with an export: files that are missing or damaged.
type ExportError = export.Error

// OpenExport reads the manifests of an export of the table to S3, full or incremental, and checks that its files are
// there. What is wrong comes as an *ExportError. Read compares the checksums of the files.
func OpenExport(ctx context.Context, config FilesConfig) (*Files, error) {
	in, name, err := objects.At(config.Place, config.S3)
	if err != nil {
		return nil, err
	}
	opened, err := export.Open(ctx, in, name, config.Table)
	if err != nil {
		return nil, err
	}
	f := &Files{text: opened.Describe()}
	for _, file := range opened.Files {
		f.add(Piece{Name: file.Name, Items: file.Items}, opened.Lines(file, config.Keys))
	}
	return f, nil
}

// IsDamage reports whether a file's content is wrong, so that no retry helps until it is mended.
func IsDamage(err error) bool {
	var (
		export  *ExportError
		content *lines.ContentError
	)
	return errors.As(err, &export) || errors.As(err, &content)
}
