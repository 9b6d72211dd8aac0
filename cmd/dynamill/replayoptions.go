package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/replay"
)

// replayOptions are the flags of `replay`.
type replayOptions struct {
	from                 string
	rules                []string
	segments, parallel   int
	writeRateMax         int     // write units per second; 0: no bound
	readRateMax          float64 // read units per second; 0: no bound
	eventuallyConsistent bool
	dryRun, restart, yes bool
}

const (
	fromScan    = "scan"
	fromParked  = "parked"
	fromExport  = "export://"
	fromS3      = "s3://"
	fromArchive = "archive://"
	fromKeys    = "keys:"

	parallelMax = 64 // the engine itself works on several items of a page at a time
)

// check refuses what makes no sense together. What a file says to several commands
// one of them may have no use for.
func (o *replayOptions) check(s *settings, segmentsTyped bool) error {
	if o.from == fromKeys+standardInput {
		if err := s.claimStdin("--from " + o.from); err != nil {
			return err
		}
	}
	switch {
	case o.segments < 0:
		return invalid("--segments %d is negative: give a number of segments, or none", o.segments)
	case o.segments > replay.ScanSegmentsLimit:
		return invalid("--segments %d is more than DynamoDB's limit of %d", o.segments, replay.ScanSegmentsLimit)
	case o.segments > 0 && o.from != fromScan && segmentsTyped:
		return invalid("--segments has no meaning with --from %s: only a scan has segments", o.from)
	case o.eventuallyConsistent && o.from != fromScan:
		return invalid("--eventually-consistent has no meaning with --from %s: only a scan reads the table", o.from)
	case o.parallel < 1 || o.parallel > parallelMax:
		return invalid("--parallel %d is not between 1 and %d", o.parallel, parallelMax)
	case o.dryRun && o.from != fromScan:
		return invalid("--dry-run looks at the whole table: it has no meaning with --from %s", o.from)
	}
	return cmp.Or(checkRates(o.writeRateMax, o.readRateMax), o.checkFrom())
}

// checkFrom refuses what is not of the form of a source.
func (o *replayOptions) checkFrom() error {
	place := o.from
	switch {
	case place == fromScan, place == fromParked, place == fromKeys+"-":
		return nil
	case strings.HasPrefix(place, fromS3):
	default:
		scheme, rest, _ := strings.Cut(place, "://")
		if place = rest; !slices.Contains([]string{fromExport, fromArchive, fromKeys + "//"}, scheme+"://") {
			return invalid("--from %s is no source: give scan, export://PATH, s3://BUCKET/PREFIX, archive://PATH, keys://FILE, keys:- or parked", o.from)
		}
	}
	if bucket, onS3 := strings.CutPrefix(place, fromS3); place == "" || onS3 && (bucket == "" || bucket[0] == '/') {
		return invalid("--from %s names no place: give a path, or s3://BUCKET/PREFIX", o.from)
	}
	return nil
}

// whole reports whether the replay goes over all there is.
func (o *replayOptions) whole() bool { return o.from == fromScan && len(o.rules) == 0 }
