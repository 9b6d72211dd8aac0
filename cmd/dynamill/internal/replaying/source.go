package replaying

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/replay/objects"
	"github.com/dynamill/dynamill/internal/replay/sources"
)

func (r *replayer) sourceName() string {
	if r.source == nil {
		return "scan of " + r.Table
	}
	return r.source.Describe()
}

// openSource opens what --from names; a scan is made by the replay itself.
func (r *replayer) openSource(ctx context.Context) (closeSource func(), err error) {
	begin, place := r.options.source()
	files := sources.FilesConfig{Place: place, Table: r.Table, Keys: r.keys()}
	if objects.OnS3(place) {
		if files.S3, err = r.Env.S3Client(ctx); err != nil {
			return nil, r.sourceFailure(err)
		}
	}
	switch begin {
	case FromScan:
		return func() {}, nil
	case FromParked:
		r.source = sources.NewParked(r.Table, parkedKeys{r})
	case FromExport:
		r.source, err = sources.OpenExport(ctx, files)
	case FromArchive:
		r.source, err = sources.OpenArchive(ctx, files)
	case fromFile:
		r.source, err = sources.OpenKeyList(place, r.keys())
	default: // checkFrom lets nothing but standard input through
		r.source, err = sources.SpoolKeyList(stoppable(ctx, r.Settings.Stdin), "standard input", r.keys())
	}
	if err != nil {
		return nil, r.sourceFailure(err)
	}
	return func() {
		if closer, ok := r.source.(io.Closer); ok {
			_ = closer.Close()
		}
	}, nil
}

// stoppable reads what may keep one waiting for ever, until the context ends.
func stoppable(ctx context.Context, in io.Reader) io.Reader {
	out, pipe := io.Pipe()
	context.AfterFunc(ctx, func() { pipe.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(pipe, in)
		pipe.CloseWithError(err)
	}()
	return out
}

// sourceFailure tells what is wrong with a source from what keeps one from reading it.
func (r *replayer) sourceFailure(err error) error {
	err = fmt.Errorf("--from %s: %w", r.options.From, err)
	switch {
	case errors.As(err, new(*ending.Failure)):
		return err
	case errors.As(err, new(*sources.ExportError)), errors.Is(err, fs.ErrNotExist), !strings.Contains(r.options.From, FromS3):
		return ending.Invalid("%w", err)
	}
	if told := r.Env.Classify(err); told != err { //nolint:errorlint // classify returns this very error if it does not know it
		return told
	}
	return ending.Unsuited("%w", err)
}

// parkedKeys gives a replay the keys of what is parked, as soon as its engine is open.
type parkedKeys struct{ *replayer }

// CountParked counts what is parked.
func (p parkedKeys) CountParked(ctx context.Context) (int, error) { return p.engine.CountParked(ctx) }

// ParkedKeys returns the keys of what is parked behind an id, at most as many as limit says.
func (p parkedKeys) ParkedKeys(ctx context.Context, behind string, limit int) (page sources.Page, err error) {
	parked, more, err := p.engine.ParkedBehind(ctx, behind, limit)
	if err != nil {
		return page, err
	}
	page.Last = !more
	for _, record := range parked {
		page.Keys, page.Next = append(page.Keys, record.Key), record.ID
	}
	return page, nil
}
