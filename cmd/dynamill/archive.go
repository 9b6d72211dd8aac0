package main

import (
	"github.com/dynamill/dynamill/replay/archive"
	"github.com/dynamill/dynamill/rules"
	"github.com/dynamill/dynamill/streamreader"
)

// archived is the processor that archives what another has done, if that is asked for.
func (f *follower) archived(p streamreader.Processor, keys rules.Table, options runOptions) (streamreader.Processor, error) {
	if options.archive == "" {
		return p, nil
	}
	writer, err := archive.Open(archive.Config{
		Dir: options.archive, StreamARN: f.streamARN, Gzip: options.archiveGzip,
		PartitionKey: keys.PartitionKey, SortKey: keys.SortKey,
	})
	if err != nil {
		return nil, unsuited("--archive %s cannot be used: %w", options.archive, err)
	}
	f.archive = writer
	return archive.Recorder{Processor: p, Writer: writer}, nil
}

// endArchive closes the file that is being written. All records that were
// checkpointed are on disk already.
func (f *follower) endArchive() {
	if f.archive == nil {
		return
	}
	if err := f.archive.Close(); err != nil {
		f.logger.Warn("the archive's last file did not close: its end may look torn", "error", err)
	}
}
