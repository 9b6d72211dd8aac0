package handlers

import (
	"context"
	"fmt"
)

// commandsWanted are the payloads that ask for something beside records.
const commandsWanted = `{"dynamill":"tasks"} or {"dynamill":"late","object":"s3://bucket/key"} or {"dynamill":"replay",...}`

// readCommand reads what a payload asks for that has no records.
func (r *batchReader) readCommand(env *envelope) (err error) {
	switch command := string(env.command); {
	case env.records || env.late:
		return payloadErrorf("the command %s and records in one payload: want one of them", shorten(env.command))
	case command == `"tasks"`:
		r.shape = shapeTasks
	case command == `"late"` && len(env.object) > 0:
		r.shape, r.object = shapeNamed, string(env.object)
	case command == `"replay"`:
		r.shape = shapeReplay
		r.replay, err = readReplay(env)
		return err
	case command == `"late"`:
		return payloadErrorf("the command %s names no object: want %s", command, commandsWanted)
	default:
		return payloadErrorf("the command %s is unknown: want %s", shorten(env.command), commandsWanted)
	}
	return nil
}

// read finds the batch of a payload. A late batch may be named rather than passed: with
// its report it may be larger than the 6 MB with which a function can be invoked
// (Lambda API reference, "Invoke").
func (d *delivery) read(ctx context.Context, payload []byte) (*batch, error) {
	b, err := readBatch(payload, d.Config)
	if err != nil || b.shape != shapeNamed {
		return b, err
	}
	if d.Objects == nil {
		return nil, payloadErrorf("this function reads no objects: Config.Objects is not set")
	}
	content, err := d.Objects.ReadObject(ctx, b.object)
	if err != nil {
		return nil, d.stopped(ctx, "reading the late batch "+b.object, err)
	}
	late, err := readBatch(content, d.Config)
	if err != nil {
		return nil, fmt.Errorf("the object %s is no late batch: %w", b.object, err)
	}
	// Applied as if they came right from the stream, old records could undo later ones.
	if late.shape != shapeLate {
		return nil, payloadErrorf("the object %s is no late batch, as an event source mapping leaves it in S3: found a payload of kind %s",
			b.object, late.shape)
	}
	return late, nil
}
