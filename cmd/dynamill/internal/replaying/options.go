package replaying

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/replay"
)

// Options are the flags of `replay`.
type Options struct {
	From                 string
	Rules                []string
	Segments, Parallel   int
	WriteRateMax         int     // write units per second; 0: no bound
	ReadRateMax          float64 // read units per second; 0: no bound
	EventuallyConsistent bool
	DryRun, Restart, Yes bool
}

const (
	FromScan    = "scan"
	FromParked  = "parked"
	FromExport  = "export://"
	FromS3      = "s3://"
	FromArchive = "archive://"
	FromKeys    = "keys:"

	parallelMax = 64 // the engine itself works on several items of a page at a time
)

// Check refuses what makes no sense together. What a file says to several commands
// one of them may have no use for.
func (o *Options) Check(s *settings.Settings, segmentsTyped bool) error {
	if o.From == FromKeys+settings.StandardInput {
		if err := s.ClaimStdin("--from " + o.From); err != nil {
			return err
		}
	}
	switch {
	case o.Segments < 0:
		return ending.Invalid("--segments %d is negative: give a number of segments, or none", o.Segments)
	case o.Segments > replay.ScanSegmentsLimit:
		return ending.Invalid("--segments %d is more than DynamoDB's limit of %d", o.Segments, replay.ScanSegmentsLimit)
	case o.Segments > 0 && o.From != FromScan && segmentsTyped:
		return ending.Invalid("--segments has no meaning with --from %s: only a scan has segments", o.From)
	case o.EventuallyConsistent && o.From != FromScan:
		return ending.Invalid("--eventually-consistent has no meaning with --from %s: only a scan reads the table", o.From)
	case o.Parallel < 1 || o.Parallel > parallelMax:
		return ending.Invalid("--parallel %d is not between 1 and %d", o.Parallel, parallelMax)
	case o.DryRun && o.From != FromScan:
		return ending.Invalid("--dry-run looks at the whole table: it has no meaning with --from %s", o.From)
	}
	return cmp.Or(settings.CheckRates(o.WriteRateMax, o.ReadRateMax), o.checkFrom())
}

// checkFrom refuses what is not of the form of a source.
func (o *Options) checkFrom() error {
	place := o.From
	switch {
	case place == FromScan, place == FromParked, place == FromKeys+"-":
		return nil
	case strings.HasPrefix(place, FromS3):
	default:
		scheme, rest, _ := strings.Cut(place, "://")
		if place = rest; !slices.Contains([]string{FromExport, FromArchive, FromKeys + "//"}, scheme+"://") {
			return ending.Invalid("--from %s is no source: give scan, export://PATH, s3://BUCKET/PREFIX, archive://PATH, keys://FILE, keys:- or parked", o.From)
		}
	}
	if bucket, onS3 := strings.CutPrefix(place, FromS3); place == "" || onS3 && (bucket == "" || bucket[0] == '/') {
		return ending.Invalid("--from %s names no place: give a path, or s3://BUCKET/PREFIX", o.From)
	}
	return nil
}

// whole reports whether the replay goes over all there is.
func (o *Options) whole() bool { return o.From == FromScan && len(o.Rules) == 0 }
