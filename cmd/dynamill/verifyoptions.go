package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	verifySettle   = 10 * time.Second
	verifyWait     = 2 * time.Minute
	verifyMemory   = "128MB"
	verifyMemoryLo = 16 << 20
	verifyLimit    = 100
)

// verifyOptions are the flags of `verify`.
type verifyOptions struct {
	repair       bool
	rules        []string
	sample       string
	sampleSeed   uint64
	memory       string
	tempDir      string
	segments     int
	readRateMax  float64
	writeRateMax int
	settle, wait time.Duration
	lagMax       time.Duration
	limit        int
	share        float64 // of --sample
	memoryBytes  int
}

// check refuses what makes no sense, and reads what is not read by then.
func (o *verifyOptions) check(seedGiven bool, typed map[string]bool) (err error) {
	if o.share, err = shareOf(o.sample); err != nil {
		return invalid("--sample %q: %w", o.sample, err)
	}
	if o.memoryBytes, err = sizeOf(o.memory); err != nil {
		return invalid("--memory %q: %w", o.memory, err)
	}
	if !seedGiven {
		o.sampleSeed = rand.Uint64N(1 << 53) // what reads the summary as JSON may hold numbers as floats, as jq does
	}
	if info, err := os.Stat(o.tempDir); o.tempDir != "" && (err != nil || !info.IsDir()) {
		return invalid("--temp-dir %q is no folder: make it first", o.tempDir)
	}
	switch {
	case typed["segments"] && (o.segments < 1 || o.segments > scanSegmentsMax):
		return invalid("--segments %d: give a number from 1 to %d", o.segments, scanSegmentsMax)
	case typed["rate"] && !o.repair: // of a file it may be replay's
		return invalid("--rate has no meaning without --repair: add --repair")
	case o.settle <= 0 || o.wait < 0 || o.lagMax < 0:
		return invalid("--settle, --wait and --lag-max want durations such as 30s")
	case o.limit < 0:
		return invalid("--limit %d is negative: give a number, or 0 for all", o.limit)
	}
	o.segments = min(o.segments, scanSegmentsMax) // of a file it may be replay's, which works off few of its segments at a time
	return checkRates(o.writeRateMax, o.readRateMax)
}

// waitOrNone is --wait for package verify, in which 0 stands for a default.
func (o *verifyOptions) waitOrNone() time.Duration {
	if o.wait == 0 {
		return -1
	}
	return o.wait
}

// scanSegmentsMax is in how many segments a table is scanned at once.
const scanSegmentsMax = 1000

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
	for _, unit := range []struct {
		suffix string
		bytes  int
	}{{"GB", 1 << 30}, {"MB", 1 << 20}} {
		if number, ok := strings.CutSuffix(text, unit.suffix); ok {
			n, err := strconv.Atoi(number)
			if err != nil || n <= 0 || n > 1<<20 || n*unit.bytes < verifyMemoryLo {
				break
			}
			return n * unit.bytes, nil
		}
	}
	return 0, fmt.Errorf("give a size such as %s, at least %dMB", verifyMemory, verifyMemoryLo>>20)
}
