package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/replay"
	"github.com/dynamill/dynamill/replay/objects"
)

// openSource opens what --from names; a scan is made by the replay itself.
func (r *replayer) openSource(ctx context.Context) (closeSource func(), err error) {
	from := r.options.from
	switch {
	case from == fromScan:
		return func() {}, nil
	case from == fromParked:
		r.source = replay.NewParked(r.env.table, r.parkedKeys)
	case strings.HasPrefix(from, fromExport), strings.HasPrefix(from, fromS3):
		r.source, err = r.openExport(ctx, strings.TrimPrefix(from, fromExport))
	case strings.HasPrefix(from, fromArchive):
		r.source, err = r.openArchive(ctx, strings.TrimPrefix(from, fromArchive))
	case from == fromKeys+"-":
		r.source, err = replay.SpoolKeyList(stoppable{ctx, r.app.stdin}, "standard input", r.keys())
	default: // checkFrom lets nothing else through
		r.source, err = replay.OpenKeyList(strings.TrimPrefix(from, fromKeys+"//"), r.keys())
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
type stoppable struct {
	ctx context.Context //nolint:containedctx // a Reader is given none
	in  io.Reader
}

func (s stoppable) Read(into []byte) (int, error) {
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		own := make([]byte, len(into)) // into is not ours any more once the context has ended
		n, err := s.in.Read(own)
		answers <- answer{own[:n], err}
	}()
	select {
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	case a := <-answers:
		return copy(into, a.text), a.err
	}
}

// sourceFailure tells what is wrong with a source from what keeps one from reading it.
func (r *replayer) sourceFailure(err error) error {
	var (
		known   *failure
		damaged *replay.ExportError
	)
	err = fmt.Errorf("--from %s: %w", r.options.from, err)
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &damaged), errors.Is(err, fs.ErrNotExist), !strings.Contains(r.options.from, fromS3):
		return invalid("%w", err)
	}
	return unsuited("%w: check the bucket's name, the region, and that the credentials may s3:GetObject and s3:ListBucket there", err)
}

func (r *replayer) openExport(ctx context.Context, place string) (replay.Source, error) {
	client, err := r.s3Client(ctx, place)
	if err != nil {
		return nil, err
	}
	export, err := replay.OpenExport(ctx, replay.ExportConfig{Place: place, S3: client, Table: r.env.table, Keys: r.keys()})
	if err != nil { // not a nil *Export within a Source that is none
		return nil, err
	}
	return export, nil
}

func (r *replayer) openArchive(ctx context.Context, place string) (replay.Source, error) {
	client, err := r.s3Client(ctx, place)
	if err != nil {
		return nil, err
	}
	archive, err := replay.OpenArchive(ctx, replay.ArchiveConfig{Place: place, S3: client, Table: r.env.table, Keys: r.keys()})
	if err != nil {
		return nil, err
	}
	return archive, nil
}

// s3Client makes a client of S3 for places that need one, with the credentials
// and region of the AWS configuration. --endpoint is DynamoDB's and not S3's.
func (r *replayer) s3Client(ctx context.Context, place string) (objects.S3Client, error) {
	if !objects.OnS3(place) {
		return nil, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, r.app.options.configOptions(false, r.logger)...)
	if err != nil {
		return nil, r.env.configurationFailure(err)
	}
	if cfg.Region == "" {
		cfg.Region = r.env.region
	}
	return s3.NewFromConfig(cfg), nil
}

// parkedKeys lists the keys of what is parked.
func (r *replayer) parkedKeys(ctx context.Context) ([]change.Key, error) {
	parked, err := r.engine.Parked(ctx)
	if err != nil {
		return nil, err
	}
	keys := make([]change.Key, len(parked))
	for i, p := range parked {
		keys[i] = p.Key
	}
	return keys, nil
}
