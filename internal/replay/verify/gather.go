package verify

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/extsort"
)

const (
	// chunkMax is how many suspects are judged together: what is held in memory.
	chunkMax = 10_000
	// sorterShare is the divisor for the sorter's memory: the heap may grow to twice of what is in use, pages included.
	sorterShare = 4
	// progressEvery is how many items pass between two calls of Progress.
	progressEvery = 10_000
)

// gather scans both tables and returns what is suspect.
func (v *run) gather(ctx context.Context) (_ *spool[drift.Suspect], err error) {
	sorter, err := extsort.New(v.TempDir, v.MemoryBytes/sorterShare, v.combine)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sorter.Close()) }()
	if err := v.scan(ctx, sorter); err != nil {
		return nil, err
	}
	v.showProgress("sorting")
	suspects, err := newSpool[drift.Suspect](v.TempDir, "dynamill-suspects-")
	if err != nil {
		return nil, err
	}
	if err := v.collectSuspects(ctx, sorter, suspects); err != nil {
		return nil, errors.Join(err, suspects.close())
	}
	v.summary.TempBytes = sorter.Written()
	return suspects, nil
}

func (v *run) scan(ctx context.Context, sorter *extsort.Sorter) error {
	var items, rows atomic.Int64
	var mu sync.Mutex // guards progress
	pass := func(table Table, count *atomic.Int64, facts func(change.Item, func(drift.Fact))) func() error {
		return func() error {
			return table.Each(ctx, func(item change.Item) error {
				var failed error
				facts(item, func(f drift.Fact) {
					if failed == nil && (v.sampled(f.About) || f.With != "" && v.sampled(f.With)) {
						failed = sorter.Add(keyOf(f), []byte(f.Data))
					}
				})
				if count.Add(1)%progressEvery == 0 {
					mu.Lock()
					v.progress.Items, v.progress.Rows = items.Load(), rows.Load()
					v.showProgress("scanning")
					mu.Unlock()
				}
				return failed
			})
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(pass(v.Items, &items, v.Auditor.Facts))
	if v.Rows != nil {
		g.Go(pass(v.Rows, &rows, v.Auditor.RowFacts))
	}
	err := g.Wait()
	v.summary.Items, v.summary.Rows = items.Load(), rows.Load()
	v.progress.Items, v.progress.Rows = items.Load(), rows.Load()
	return err
}

// keyOf is a fact's key in the sorter, which sorts as facts do.
func keyOf(f drift.Fact) []byte {
	key := make([]byte, 0, len(f.About)+len(f.Sub)+8)
	return append(extsort.AppendText(extsort.AppendText(key, f.About), f.Sub), f.Tag)
}

var errTorn = errors.New("a sorted record cannot be read back")

func factOf(key, data []byte) (drift.Fact, error) {
	about, rest, ok := extsort.CutText(key)
	sub, tag, ok2 := extsort.CutText(rest)
	if !ok || !ok2 || len(tag) != 1 {
		return drift.Fact{}, errTorn
	}
	return drift.Fact{About: about, Sub: sub, Tag: tag[0], Data: string(data)}, nil
}

func (v *run) combine(key, a, b []byte) ([]byte, bool) {
	f, err := factOf(key, nil)
	if err != nil {
		return nil, false
	}
	sum, ok := v.Auditor.Combine(f.About, f.Tag, string(a), string(b))
	return []byte(sum), ok
}

// collectSuspects judges what was sorted.
func (v *run) collectSuspects(ctx context.Context, sorter *extsort.Sorter, suspects *spool[drift.Suspect]) error {
	var failed error
	add, end := v.Auditor.Judge(func(s drift.Suspect) {
		if failed == nil {
			failed = suspects.add(s)
		}
	})
	n := 0
	err := sorter.Each(func(key, data []byte) error {
		if n++; n%progressEvery == 0 {
			v.progress.Suspects = suspects.count
			v.showProgress("sorting")
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		f, err := factOf(key, data)
		if err != nil {
			return err
		}
		add(f)
		return failed
	})
	if err != nil {
		return err
	}
	if end(); failed != nil {
		return failed
	}
	return suspects.rewind()
}
