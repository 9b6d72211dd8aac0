package leases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// RenewalsPerTerm: two renewals in a row may fail before the third would be late.
	RenewalsPerTerm = 3
	// marginPart of a term lies between the end of an owner's work and the first claim of another: for calls on their way,
	// and for clocks that do not run alike.
	marginPart = 10
)

// ErrNotRenewed is an ErrLost that only this worker knows: it could not renew the lease in time.
var ErrNotRenewed = fmt.Errorf("%w, or may do so at any moment, because this worker could not renew the lease in time", ErrLost)

// Held is a lease that this worker owns. All writes to its row go through it, one at a time. The worker may act only for one
// term, less a margin, from the start of the last write that succeeded. Another worker saw that write later, and waits for a
// whole term from there, each on its own monotonic clock.
type Held struct {
	store Store
	term  time.Duration

	writing chan struct{} // holds one token while a write is on its way
	row     Lease         // as the last write left it; of the goroutine that has the token

	mu       sync.Mutex
	known    Lease     // row, for readers that must not wait
	renewing bool      // from BeginRenewal to the end of Renew
	renewed  time.Time // when the last write that succeeded began
	lost     bool
	cause    error       // what the row said when it was lost
	expiry   *time.Timer // ends the window
	onLost   func()      // ends the work that is done under the lease

	describe func(*Lease) // adds what is known of the shard now
}

// Hold takes charge of a row that was claimed by a call which began at claimed.
func Hold(store Store, row Lease, term time.Duration, claimed time.Time) *Held {
	h := &Held{
		store: store, term: term, row: row, known: row, renewed: claimed,
		writing:  make(chan struct{}, 1),
		describe: func(*Lease) {}, onLost: func() {},
	}
	h.expiry = time.AfterFunc(h.window()-time.Since(claimed), h.lose)
	return h
}

func (h *Held) window() time.Duration { return h.term - h.term/marginPart }

// Arm sets what runs when the lease is lost (at once if it is lost already), and what each write adds to the row.
func (h *Held) Arm(onLost func(), describe func(*Lease)) {
	h.mu.Lock()
	h.onLost, h.describe = onLost, describe
	lost := h.lost
	h.mu.Unlock()
	if lost {
		onLost()
	}
}

// Valid reports whether the worker may act under the lease now.
func (h *Held) Valid() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.lost && time.Since(h.renewed) < h.window()
}

// lose ends whatever is done under the lease. What the row says is no longer
// this worker's to change.
func (h *Held) lose() {
	h.mu.Lock()
	before := h.lost
	h.lost = true
	onLost := h.onLost
	h.mu.Unlock()
	if !before {
		onLost()
	}
}

// Leave stops the timer. Nothing is written under the lease any more.
func (h *Held) Leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = true
	h.expiry.Stop()
}

// Lease returns the row as it is known.
func (h *Held) Lease() Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known
}

// BeginRenewal reports whether Renew is to be called: it is due, or has failed, and no
// call is under way.
func (h *Held) BeginRenewal() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := !h.renewing && !h.lost && time.Since(h.renewed) >= h.term/RenewalsPerTerm
	h.renewing = h.renewing || due
	return due
}

// Cause is the ErrLost by which the lease was lost; nil if it is not, or if only this worker knows.
func (h *Held) Cause() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause
}

// Until returns a context that ends with the window, as it is now.
func (h *Held) Until(ctx context.Context) (context.Context, context.CancelFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return context.WithDeadlineCause(ctx, h.renewed.Add(h.window()), ErrNotRenewed)
}

// Renew extends the window, and writes how far behind the shard is, for other workers. It
// leaves that to another write that is on its way.
func (h *Held) Renew(ctx context.Context) error {
	defer func() {
		h.mu.Lock()
		h.renewing = false
		h.mu.Unlock()
	}()
	select {
	case h.writing <- struct{}{}:
	default:
		return nil
	}
	return h.send(ctx, func(ctx context.Context) (Lease, error) {
		return h.store.Renew(ctx, h.described())
	})
}

// Save writes the row with what change makes of it.
func (h *Held) Save(ctx context.Context, change func(*Lease)) error {
	return h.write(ctx, func(ctx context.Context) (Lease, error) {
		row := h.described()
		change(&row)
		h.row = row // also if no answer comes: what may be written must not be taken back by the next write
		return h.store.Save(ctx, row)
	})
}

// described is the row with what is known of the shard now.
func (h *Held) described() Lease {
	h.mu.Lock()
	describe := h.describe
	h.mu.Unlock()
	row := h.row
	describe(&row)
	return row
}

// Release gives the lease up, with the checkpoint that change sets.
func (h *Held) Release(ctx context.Context, change func(*Lease)) error {
	return h.write(ctx, func(ctx context.Context) (Lease, error) {
		row := h.described()
		change(&row)
		row, err := h.store.Release(ctx, row)
		if err == nil {
			h.Leave() // before the next write that waits gets its turn
		}
		return row, err
	})
}

// write waits its turn, no longer than the window lasts, and makes one call.
func (h *Held) write(ctx context.Context, do func(context.Context) (Lease, error)) error {
	if ctx.Err() != nil { // or chance would say whether the row is written
		return context.Cause(ctx)
	}
	inTime, cancel := h.Until(ctx)
	defer cancel()
	select {
	case h.writing <- struct{}{}:
		return h.send(ctx, do)
	case <-inTime.Done():
	}
	if err := context.Cause(inTime); !errors.Is(err, ErrNotRenewed) || !h.Valid() {
		return err
	}
	return h.write(ctx, do) // the write before it has extended the window
}

// send makes one call, for the goroutine that has the token, and gives that back. A success extends the window, from when
// the call began. It gives up a call when a renewal would be due, or the window ends.
func (h *Held) send(ctx context.Context, do func(context.Context) (Lease, error)) error {
	defer func() { <-h.writing }()
	if !h.Valid() {
		return ErrNotRenewed
	}
	began := time.Now()
	inTime, cancel := h.Until(ctx)
	defer cancel()
	// A little sooner: else chance says whether the renewal that is due then still finds this one under way.
	inTime, cancel = context.WithTimeout(inTime, h.term/RenewalsPerTerm-h.term/50)
	defer cancel()
	row, err := do(inTime)
	if errors.Is(err, ErrLost) {
		h.mu.Lock()
		h.cause = err
		h.mu.Unlock()
		h.lose()
	}
	if err != nil {
		return err
	}
	h.row = row
	h.mu.Lock()
	h.known, h.renewed = row, began
	if !h.lost {
		h.expiry.Reset(h.window() - time.Since(began))
	}
	h.mu.Unlock()
	return nil
}
