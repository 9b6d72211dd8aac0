package verifying

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
)

// Defaults and bounds of the flags of `verify`.
const (
	SettleDefault = 10 * time.Second
	WaitDefault   = 2 * time.Minute
	MemoryDefault = "128MB"
	memoryMin     = 16 << 20
	LimitDefault  = 100
)

// Options are the flags of `verify`.
type Options struct {
	Repair        bool
	DeleteOrphans bool // delete the orphans that are listed
	DryRun        bool
	Rules         []string
	Sample        string
	SampleSeed    uint64
	Memory        string
	TempDir       string
	Segments      int
	ReadRateMax   float64
	Budget        int
	Settle, Wait  time.Duration
	LagMax        time.Duration
	Limit         int
	share         float64 // of --sample
	memoryBytes   int
}

// Check refuses flags that are invalid or contradict each other, parses --sample and --memory, and draws the sample's seed.
func (o *Options) Check(seedGiven bool, typed map[string]bool) (err error) {
	if o.share, err = shareOf(o.Sample); err != nil {
		return ending.Invalid("--sample %q: %w", o.Sample, err)
	}
	if o.memoryBytes, err = sizeOf(o.Memory); err != nil {
		return ending.Invalid("--memory %q: %w", o.Memory, err)
	}
	if !seedGiven {
		o.SampleSeed = rand.Uint64N(1 << 53) // what reads the summary as JSON may hold numbers as floats, as jq does
	}
	if info, err := os.Stat(o.TempDir); o.TempDir != "" && (err != nil || !info.IsDir()) {
		return ending.Invalid("--temp-dir %q is no folder: make it first", o.TempDir)
	}
	switch {
	case o.Segments < 0, typed["segments"] && (o.Segments < 1 || o.Segments > ScanSegmentsMax):
		return ending.Invalid("--segments %d: give a number from 1 to %d", o.Segments, ScanSegmentsMax)
	case typed["dry-run"] && o.DryRun && !o.DeleteOrphans: // of a file it may be that of `replay`
		return ending.Invalid("--dry-run has no meaning without --delete-orphans: without --repair, verify only reads")
	case o.DryRun && o.Repair:
		return ending.Invalid("--repair writes, and --dry-run does not: give one of them")
	case typed["budget"] && !o.Repair: // of a file it may be that of `run` or `replay`
		return ending.Invalid("--budget has no meaning without --repair: add --repair")
	case o.Settle <= 0 || o.Wait < 0 || o.LagMax < 0:
		return ending.Invalid("--settle, --wait and --lag-max want durations such as 30s")
	case o.Limit < 0:
		return ending.Invalid("--limit %d is negative: give a number, or 0 for all", o.Limit)
	}
	return settings.CheckRates(o.Budget, o.ReadRateMax)
}

// ScanSegmentsMax is the most segments in which verify and dry runs scan a table. A file may set more for replay.
const ScanSegmentsMax = 1000

// shareOf reads 1% or 0.01.
func shareOf(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 1) {
		return 0, errors.New("give a share such as 1%")
	}
	return share, nil
}

// sizeOf reads 128MB or 1GB.
func sizeOf(text string) (int, error) {
	number, bytes := text[:max(0, len(text)-2)], map[string]int{"GB": 1 << 30, "MB": 1 << 20}[text[max(0, len(text)-2):]]
	if n, err := strconv.Atoi(number); err == nil && n > 0 && n <= 1<<20 && n*bytes >= memoryMin {
		return n * bytes, nil
	}
	return 0, fmt.Errorf("give a size such as %s, at least %dMB", MemoryDefault, memoryMin>>20)
}
