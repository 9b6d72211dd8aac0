package verify

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/dynamill/dynamill/internal/drift"
	"github.com/dynamill/dynamill/internal/stream/streamapi"
)

// removedSideBySide is how many items are taken away at the same time.
const removedSideBySide = 16

// judgeOptional lists what was found and is no drift, and takes it away if that was asked for.
func (v *run) judgeOptional(ctx context.Context, found []drift.Reading) error {
	statuses, whys := make([]Status, len(found)), make([]string, len(found))
	if v.Remover != nil && len(found) > 0 {
		v.showProgress(phaseOfRepairs)
	}
	all, removing := errgroup.WithContext(ctx)
	all.SetLimit(removedSideBySide)
	for i, r := range found {
		if statuses[i] = Listed; v.Remover == nil {
			continue
		}
		all.Go(func() error {
			done, err := v.Remover.Mend(removing, r)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case streamapi.StopsReading(err):
				return err
			case err != nil:
				whys[i] = err.Error()
			case !done:
				whys[i] = whyContested
			default:
				statuses[i] = Deleted
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for i, r := range found {
		if err := v.reportOptional(statuses[i], whys[i], r); err != nil {
			return err
		}
	}
	return nil
}

// reportOptional reports what is no drift.
func (v *run) reportOptional(status Status, why string, r drift.Reading) error {
	for _, f := range r.Findings {
		if v.summary.Listed++; status == Deleted {
			v.summary.Deleted++
		}
		if err := v.Found(Result{Finding: f, Status: status, Why: why}); err != nil {
			return err
		}
	}
	return nil
}
