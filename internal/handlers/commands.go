package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// command is a payload that asks for something beside records.
type command struct {
	Dynamill json.RawMessage // its name, as JSON
	Object   string          // of a late batch that is only named

	// What is asked of a Replayer. Exactly one of Begin, Next and Work is set.
	Begin      *ReplayRequest
	Next, Work *json.RawMessage
	Piece      string
}

// commandsWanted are the payloads that are commands.
const commandsWanted = `{"dynamill":"tasks"} or {"dynamill":"late","object":"s3://bucket/key"} or {"dynamill":"replay",...}`

// readCommand reads a payload without records. Only a replay must not have unknown fields, letter case aside: with a
// misspelt option it would replay something else.
func (r *batchReader) readCommand(payload []byte, beside bool) error {
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.DisallowUnknownFields()
	c := &r.command
	err := decoder.Decode(c)
	switch name := string(c.Dynamill); {
	case beside:
		return payloadErrorf("the command %s and records in one payload: want one of them", shorten(c.Dynamill))
	case name == `"tasks"`:
		r.shape = shapeTasks
	case name == `"late"` && c.Object != "":
		r.shape = shapeNamed
	case name == `"replay"` && err != nil:
		return payloadErrorf("the replay cannot be read: %s: %s", strings.TrimPrefix(err.Error(), "json: "), replayWanted)
	case name == `"replay"`:
		r.shape = shapeReplay
		return c.checkReplay()
	case name == `"late"`:
		return payloadErrorf("the command %s names no object: want %s", name, commandsWanted)
	default:
		return payloadErrorf("the command %s is unknown: want %s", shorten(c.Dynamill), commandsWanted)
	}
	return nil
}

// read finds the batch of a payload. A late batch may be named: with its report it may be larger than the 6 MB with
// which a function can be invoked (Lambda API reference, "Invoke").
func (d *delivery) read(ctx context.Context, payload []byte) (*batch, error) {
	b, err := readBatch(payload, d.Config)
	if err != nil || b.shape != shapeNamed {
		return b, err
	}
	if d.ReadObject == nil {
		return nil, payloadErrorf("this function reads no objects: Config.ReadObject is not set")
	}
	object := b.command.Object
	content, err := d.ReadObject(ctx, object)
	if err != nil {
		return nil, d.stopped(ctx, "reading the late batch "+object, err)
	}
	late, err := readBatch(content, d.Config)
	if err != nil {
		return nil, fmt.Errorf("the object %s is no late batch: %w", object, err)
	}
	// Applied as if they came right from the stream, old records could undo later ones.
	if late.shape != shapeLate {
		return nil, payloadErrorf("the object %s is no late batch, as an event source mapping leaves it in S3: found a payload of kind %s",
			object, late.shape)
	}
	return late, nil
}
