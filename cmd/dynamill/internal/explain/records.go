package explain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/dynamojson"
	"github.com/dynamill/dynamill/internal/rules"
)

// recordsMax is the most records that one file may hold (the most that Lambda delivers at once).
const recordsMax = 10_000

// A record is read strictly where a slip would change what it means (types, images, keys). Fields that say nothing about the
// change are passed over, because Lambda and GetRecords differ in them.
type record struct {
	EventName      string
	EventSourceARN string
	DynamoDB       *struct {
		Keys, NewImage, OldImage map[string]json.RawMessage
		SequenceNumber           string
	}
	UserIdentity *struct{ Type, PrincipalID string }
}

// labelUnknown stands for the stream label where a record does not name its stream.
const labelUnknown = "unknown"

// Decode reads all records in src, in their order: a Lambda event, the answer of GetRecords (as the aws command prints
// it), a list of records or a single one. All are of this table. An error names the record and the place in it.
func Decode(src []byte, table rules.Table) ([]change.Record, error) {
	raws, err := split(src)
	if err != nil {
		return nil, err
	}
	if len(raws) == 0 {
		return nil, errors.New("there is no record in it")
	}
	if len(raws) > recordsMax {
		return nil, fmt.Errorf("it holds %d records, more than %d", len(raws), recordsMax)
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
	case '{':
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(whole, &fields); err != nil {
			return nil, err
		}
		wrapped, ok := fields["Records"]
		if !ok {
			return []json.RawMessage{whole}, nil
		}
		whole = wrapped
	default:
		return nil, errors.New("want a record, a list of records or an object with Records")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(whole, &list); err != nil {
		return nil, errors.New("field Records: want a list of records")
	}
	return list, nil
}

func decodeRecord(raw json.RawMessage, table rules.Table) (out change.Record, err error) {
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return out, shapeError(err)
	}
	if r.DynamoDB == nil {
		return out, errors.New(`no field "dynamodb": want a stream record {"eventName": ..., "dynamodb": {"Keys": ..., "NewImage": ...}}`)
	}
	var wrongKey, wrongNew, wrongOld error
	out.Key, wrongKey = decodeKey(r.DynamoDB.Keys, table)
	out.New, wrongNew = decodeImage("NewImage", r.DynamoDB.NewImage)
	out.Old, wrongOld = decodeImage("OldImage", r.DynamoDB.OldImage)
	if err := cmp.Or(wrongKey, wrongNew, wrongOld); err != nil {
		return out, err
	}
	if err := checkImages(r.EventName, out); err != nil {
		return out, err
	}
	if number := r.DynamoDB.SequenceNumber; number != "" {
		if out.Position, err = change.NewPosition(label(r.EventSourceARN), number); err != nil {
			return out, fmt.Errorf("dynamodb.SequenceNumber: %w", err)
		}
	}
	by := r.UserIdentity
	out.Expired = by != nil && attributes.IsExpiry(by.Type, by.PrincipalID)
	return out, nil
}

type images struct{ old, new bool }

func (i images) String() string {
	return map[images]string{{true, true}: "both images", {old: true}: "OldImage only", {new: true}: "NewImage only", {}: "no image"}[i]
}

var eventImages = map[string]images{"INSERT": {new: true}, "MODIFY": {true, true}, "REMOVE": {old: true}}

// checkImages refuses a record whose images do not fit its event: it would be
// explained as something that it is not.
func checkImages(event string, r change.Record) error {
	has := images{r.Old != nil, r.New != nil}
	want, known := eventImages[event]
	switch {
	case event == "" && has == images{}:
		event = "a record"
	case event == "" || known && has == want:
		return nil
	case !known:
		return fmt.Errorf("eventName %q is not INSERT, MODIFY or REMOVE", event)
	}
	return fmt.Errorf("%s with %s: the stream must carry NEW_AND_OLD_IMAGES", event, has)
}

// label takes the stream label out of a stream's ARN: arn:...:table/NAME/stream/LABEL.
func label(arn string) string {
	if _, found, ok := strings.Cut(arn, "/stream/"); ok && found != "" && !strings.ContainsAny(found, "#|") {
		return found
	}
	return labelUnknown
}

func syntaxError(src []byte, err error) error {
	switch syntax, ok := errors.AsType[*json.SyntaxError](err); {
	case ok:
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
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return err
	case wrong.Field == "":
		return fmt.Errorf("want an object, not a %s", wrong.Value)
	}
	return fmt.Errorf("%s: a %s does not belong there", wrong.Field, wrong.Value)
}

// place turns a byte offset into line:column.
func place(src []byte, offset int64) string {
	before := src[:min(max(offset, 0), int64(len(src)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("%d:%d", line, max(column-1, 1))
}

func decodeKey(keys map[string]json.RawMessage, table rules.Table) (key change.Key, err error) {
	want := 1
	if table.SortKey != "" {
		want = 2
	}
	if len(keys) != want {
		return key, fmt.Errorf("dynamodb.Keys holds %d attributes, but the rule file's table has %s", len(keys), keyNames(table))
	}
	if key.Partition, err = keyText(keys, table.PartitionKey, table); err == nil && want == 2 {
		key.Sort, err = keyText(keys, table.SortKey, table)
	}
	return key, err
}

func keyText(keys map[string]json.RawMessage, name string, table rules.Table) (string, error) {
	raw, ok := keys[name]
	if !ok {
		return "", fmt.Errorf("dynamodb.Keys has no %q, but the rule file's table has %s", name, keyNames(table))
	}
	path := "dynamodb.Keys." + name
	value, err := dynamojson.Decode(path, raw)
	if err != nil {
		return "", err
	}
	if kind := value.Kind(); kind != change.KindString && kind != change.KindNumber {
		return "", fmt.Errorf("%s: a key of type %s is not supported, only S and N", path, kind)
	}
	if value.Text() == "" {
		return "", fmt.Errorf("%s: a key is never empty", path)
	}
	return value.Text(), nil
}

func keyNames(table rules.Table) string {
	if table.SortKey == "" {
		return fmt.Sprintf("the key %q", table.PartitionKey)
	}
	return fmt.Sprintf("the keys %q and %q", table.PartitionKey, table.SortKey)
}

// decodeImage returns a nil Image for an image that is not there.
func decodeImage(name string, fields map[string]json.RawMessage) (change.Image, error) {
	if len(fields) == 0 { // an item always has its key
		return nil, nil
	}
	item := make(change.Item, len(fields))
	for attribute, raw := range fields {
		value, err := dynamojson.Decode("dynamodb."+name+"."+attribute, raw)
		if err != nil {
			return nil, err
		}
		item[attribute] = value
	}
	return item, nil
}
