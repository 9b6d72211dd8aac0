// Package recordjson reads stream records as people have them in files: a
// Lambda event, the answer of GetRecords (as the aws command prints it), a list
// of records or a single one. It imports change and
// internal/dynamojson only.
//
// It is strict where a slip would change what a record means (types, images,
// keys) and says where the slip is; fields that say nothing about the change
// are passed over, since Lambda and GetRecords differ in them.
package recordjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// RecordsMax is the most records that one file may hold (the most that Lambda delivers at once).
const RecordsMax = 10_000

// labelUnknown stands for the stream label where a record does not name its stream.
const labelUnknown = "unknown"

type record struct {
	EventName      string
	EventSourceARN string
	DynamoDB       *body
	UserIdentity   *struct{ Type, PrincipalID string }
}

type body struct {
	Keys, NewImage, OldImage map[string]json.RawMessage
	SequenceNumber           string
	StreamViewType           string
}

// Table names the key attributes of the table that the records are from; Sort is "" if it has no sort key.
type Table struct{ Partition, Sort string }

// Decode reads all records in src, in their order. An error names the record
// and the place in it.
func Decode(src []byte, table Table) ([]change.Record, error) {
	raws, err := split(src)
	if err != nil {
		return nil, err
	}
	if len(raws) == 0 {
		return nil, errors.New("there is no record in it")
	}
	if len(raws) > RecordsMax {
		return nil, fmt.Errorf("it holds %d records, more than %d", len(raws), RecordsMax)
	}
	records := make([]change.Record, len(raws))
	for i, raw := range raws {
		if records[i], err = decodeRecord(raw, table); err != nil {
			return nil, fmt.Errorf("record %d: %w", i+1, err)
		}
	}
	return records, nil
}

// split finds the records, whichever wrapping the file has.
func split(src []byte) ([]json.RawMessage, error) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	var whole json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(src))
	if err := decoder.Decode(&whole); err != nil {
		return nil, syntaxError(src, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: something follows the end of the JSON value", place(src, decoder.InputOffset()))
	}
	switch whole[0] {
	case '[':
		var list []json.RawMessage
		err := json.Unmarshal(whole, &list)
		return list, err
	case '{':
	default:
		return nil, errors.New("want a record, a list of records or an object with Records")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(whole, &fields); err != nil {
		return nil, err
	}
	wrapped, ok := fields["Records"]
	if !ok {
		return []json.RawMessage{whole}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(wrapped, &list); err != nil {
		return nil, errors.New("field Records: want a list of records")
	}
	return list, nil
}

func decodeRecord(raw json.RawMessage, table Table) (change.Record, error) {
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return change.Record{}, shapeError(err)
	}
	if r.DynamoDB == nil {
		return change.Record{},
			errors.New(`no field "dynamodb": want a stream record {"eventName": ..., "dynamodb": {"Keys": ..., "NewImage": ...}}`)
	}
	out := change.Record{}
	var err error
	if out.Key, err = decodeKey(r.DynamoDB.Keys, table); err != nil {
		return change.Record{}, err
	}
	if out.New, err = decodeImage("NewImage", r.DynamoDB.NewImage); err != nil {
		return change.Record{}, err
	}
	if out.Old, err = decodeImage("OldImage", r.DynamoDB.OldImage); err != nil {
		return change.Record{}, err
	}
	if err := checkImages(r.EventName, out); err != nil {
		return change.Record{}, err
	}
	if number := r.DynamoDB.SequenceNumber; number != "" {
		if out.Position, err = change.NewPosition(label(r.EventSourceARN), number); err != nil {
			return change.Record{}, fmt.Errorf("dynamodb.SequenceNumber: %w", err)
		}
	}
	who := r.UserIdentity
	out.Expired = who != nil && strings.EqualFold(who.Type, "Service") && who.PrincipalID == "dynamodb.amazonaws.com"
	return out, nil
}

// checkImages refuses a record whose images do not fit its event: it would be
// explained as something that it is not.
func checkImages(event string, r change.Record) error {
	const remedy = "the stream must carry NEW_AND_OLD_IMAGES"
	var fits bool
	switch event {
	case "INSERT":
		fits = r.Old == nil && r.New != nil
	case "MODIFY":
		fits = r.Old != nil && r.New != nil
	case "REMOVE":
		fits = r.Old != nil && r.New == nil
	case "":
		fits = r.Old != nil || r.New != nil
		event = "a record"
	default:
		return fmt.Errorf("eventName %q is not INSERT, MODIFY or REMOVE", event)
	}
	if fits {
		return nil
	}
	return fmt.Errorf("%s with %s: %s", event, images(r), remedy)
}

func images(r change.Record) string {
	switch {
	case r.Old != nil && r.New != nil:
		return "both images"
	case r.Old != nil:
		return "OldImage only"
	case r.New != nil:
		return "NewImage only"
	}
	return "no image"
}

// label takes the stream label out of a stream's ARN: arn:...:table/NAME/stream/LABEL.
func label(arn string) string {
	if _, found, ok := strings.Cut(arn, "/stream/"); ok && found != "" && !strings.ContainsAny(found, "#|") {
		return found
	}
	return labelUnknown
}

func syntaxError(src []byte, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: not JSON: %w", place(src, syntax.Offset), err)
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the JSON ends too early", place(src, int64(len(src))))
	}
	return err
}

// shapeError says which field has the wrong JSON type.
func shapeError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("want an object, not a %s", wrong.Value)
		}
		return fmt.Errorf("%s: a %s does not belong there", wrong.Field, wrong.Value)
	}
	return err
}

// place turns a byte offset into line:column.
func place(src []byte, offset int64) string {
	before := src[:min(max(offset, 0), int64(len(src)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("%d:%d", line, max(column-1, 1))
}
