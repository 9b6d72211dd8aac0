package handlers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/dynamojson"
)

// Codes of what can be wrong with a record, beside those of its JSON.
const (
	codeKeys     = "record.keys"     // keys that are missing or not the table's
	codeImages   = "record.images"   // images that do not fit the event
	codePosition = "record.position" // no stream label or sequence number
	codeTable    = "record.table"    // of another table's stream
)

// kind is what one element of a batch is.
type kind uint8

const (
	kindUnknown kind = iota
	kindRecord       // a stream record
	kindMessage      // an SQS message
	kindForeign      // of another event source
)

// element is one record of a batch, good or not.
type element struct {
	kind  kind
	raw   []byte            // the record's JSON; of a message, its body
	fault *dynamojson.Fault // why it is malformed; nil if it is not

	sequence, eventID, messageID []byte // by which an answer may name it; empty if it has none

	label  string // of its stream
	hasKey bool
	record change.Record // of a malformed one only the key, and the position if it has one

	parked bool
	done   bool // it need not come again
}

// draft is a record while its parts are found, in whatever order.
type draft struct {
	name, view        []byte // eventName, StreamViewType
	body              bool   // there was a "dynamodb"
	otherTable        bool   // it is of another table's stream
	hasOld, hasNew    bool
	messageBody       dynamojson.Text
	hasMessageBody    bool
	source, messageID []byte // eventSource, messageId
}

// recordReader reads stream records. What many records share is made once.
type recordReader struct {
	table           string // whose records are wanted; "" for any
	partition, sort string // the table's key attributes; sort is "" if it has none
	images          imageArena

	arn        []byte // of the last record
	label      string
	otherTable bool // it is of another table
}

// read reads one element of a batch. It returns false only if broken JSON hides the element's end.
func (r *recordReader) read(s *dynamojson.Scanner, e *element, d *draft) bool {
	s.Next()
	from := s.Pos
	ok := s.Part(&e.fault, func() bool {
		return s.Object(func(name dynamojson.Text) bool { return r.field(s, name, e, d) })
	})
	if !ok {
		return false
	}
	e.raw, e.kind, e.messageID = s.Src[from:s.Pos], d.kind(), d.messageID
	return true
}

func (d *draft) kind() kind {
	switch string(d.source) {
	case "aws:dynamodb":
		return kindRecord
	case "aws:sqs":
		return kindMessage
	case "":
		if d.body {
			return kindRecord
		}
		if d.hasMessageBody && len(d.messageID) > 0 {
			return kindMessage
		}
		return kindUnknown
	}
	return kindForeign
}

// field reads one field of a stream record or an SQS message.
func (r *recordReader) field(s *dynamojson.Scanner, name dynamojson.Text, e *element, d *draft) bool {
	switch string(s.Src[name.From:name.To]) {
	case "dynamodb":
		if d.body {
			return s.Fail(dynamojson.CodeJSON, "two fields dynamodb")
		}
		d.body = true
		return s.Part(&e.fault, func() bool {
			return s.Object(func(name dynamojson.Text) bool { return r.bodyField(s, name, e, d) })
		})
	case "eventName":
		return s.Word(&d.name)
	case "eventID":
		return s.Word(&e.eventID)
	case "eventSource":
		return s.Word(&d.source)
	case "eventSourceARN":
		var arn []byte
		ok := s.Word(&arn)
		e.label, d.otherTable = r.streamOf(arn)
		return ok
	case "userIdentity":
		return r.identity(s, e)
	case "messageId":
		return s.Word(&d.messageID)
	case "body":
		if s.Next() != '"' {
			return s.Skip(0)
		}
		d.messageBody, d.hasMessageBody = s.Text()
		return d.hasMessageBody
	}
	return s.Skip(0)
}

// bodyField reads one field of a record's "dynamodb".
func (r *recordReader) bodyField(s *dynamojson.Scanner, name dynamojson.Text, e *element, d *draft) bool {
	switch string(s.Src[name.From:name.To]) {
	case "Keys":
		if e.hasKey {
			return s.Fail(dynamojson.CodeJSON, "two fields Keys")
		}
		return s.Part(&e.fault, func() bool { return r.keys(s, e) })
	case "NewImage":
		return s.Part(&e.fault, func() bool { return r.image(s, &e.record.New, &d.hasNew) })
	case "OldImage":
		return s.Part(&e.fault, func() bool { return r.image(s, &e.record.Old, &d.hasOld) })
	case "SequenceNumber":
		return s.Word(&e.sequence)
	case "StreamViewType":
		return s.Word(&d.view)
	case "ApproximateCreationDateTime":
		var seconds []byte
		ok := s.Raw(&seconds)
		e.record.Created = instantOf(seconds)
		return ok
	}
	return s.Skip(0)
}

func (r *recordReader) image(s *dynamojson.Scanner, out *change.Image, has *bool) bool {
	if *has {
		return s.Fail(codeImages, "the same image twice")
	}
	if s.Literal("null") {
		return true
	}
	*has = true
	im, ok := r.images.read(s)
	if im != nil {
		*out = im
	}
	return ok
}

// keys reads the item's key: exactly the attributes that the table has.
func (r *recordReader) keys(s *dynamojson.Scanner, e *element) bool {
	var partition, sort change.Value
	others := 0
	ok := s.Object(func(name dynamojson.Text) bool {
		out := &partition
		switch attribute := s.Bytes(name); {
		case string(attribute) == r.partition:
		case string(attribute) == r.sort && r.sort != "":
			out = &sort
		default:
			others++
			return s.Value(0, nil)
		}
		if out.Kind() != change.KindAbsent {
			return s.Fail(codeKeys, "the same key attribute twice")
		}
		return s.Value(0, out)
	})
	if !ok {
		return false
	}
	if others > 0 {
		return s.Fail(codeKeys, "keys other than the table's %q and %q", r.partition, r.sort)
	}
	if !isKey(partition) || r.sort != "" && !isKey(sort) {
		return s.Fail(codeKeys, "want a string or number that is not empty in each key attribute of the table (%q, %q)", r.partition, r.sort)
	}
	e.record.Key, e.hasKey = change.Key{Partition: partition.Text(), Sort: sort.Text()}, true
	return true
}

func isKey(v change.Value) bool {
	return (v.Kind() == change.KindString || v.Kind() == change.KindNumber) && v.Text() != ""
}

// identity reads the author of the change: null, or time to live's service.
func (r *recordReader) identity(s *dynamojson.Scanner, e *element) bool {
	if s.Next() != '{' {
		return s.Skip(0)
	}
	var kind, principal []byte
	ok := s.Object(func(name dynamojson.Text) bool {
		switch string(s.Src[name.From:name.To]) {
		case "type":
			return s.Word(&kind)
		case "principalId":
			return s.Word(&principal)
		}
		return s.Skip(0)
	})
	e.record.Expired = strings.EqualFold(string(kind), "Service") && string(principal) == "dynamodb.amazonaws.com"
	return ok
}

// streamOf takes the label ("" if there is none) out of a stream's ARN, arn:...:table/NAME/stream/LABEL, and reports
// whether the stream is another table's.
func (r *recordReader) streamOf(arn []byte) (label string, strange bool) {
	if r.label == "" || !bytes.Equal(arn, r.arn) {
		stream, label, _ := bytes.Cut(arn, []byte("/stream/"))
		_, table, found := bytes.Cut(stream, []byte(":table/"))
		r.arn, r.label, r.otherTable = arn, string(label), found && r.table != "" && string(table) != r.table
	}
	return r.label, r.otherTable
}

// instantOf reads seconds since 1970. It only shows lag, so any other text is the zero time.
func instantOf(seconds []byte) time.Time {
	if f, err := strconv.ParseFloat(string(seconds), 64); err == nil && f >= 0 && f < 1<<40 {
		return time.Unix(int64(f), 0).UTC()
	}
	return time.Time{}
}

// finish checks the parts of a stream record against each other, and gives the record its position.
func (d *draft) finish(e *element) {
	position, err := change.NewPosition(e.label, string(e.sequence))
	switch {
	case e.fault != nil:
	case !utf8.Valid(e.raw):
		e.fault = &dynamojson.Fault{Code: dynamojson.CodeJSON, Reason: "it is not UTF-8"}
	case !d.body:
		e.fault = &dynamojson.Fault{Code: dynamojson.CodeJSON, Reason: "it has no field dynamodb"}
	case !e.hasKey:
		e.fault = &dynamojson.Fault{Code: codeKeys, Reason: "it has no Keys"}
	case err != nil:
		e.fault = &dynamojson.Fault{Code: codePosition, Reason: err.Error()}
	default:
		e.fault = d.imagesFault(&e.record)
	}
	if e.fault != nil {
		e.record = change.Record{Key: e.record.Key}
	}
	e.record.Position = position
}

// imagesFault refuses a record whose images do not fit its event.
func (d *draft) imagesFault(record *change.Record) *dynamojson.Fault {
	hasOld, hasNew := record.Old != nil, record.New != nil
	fits := hasOld || hasNew
	switch string(d.name) {
	case "INSERT":
		fits = !hasOld && hasNew
	case "MODIFY":
		fits = hasOld && hasNew
	case "REMOVE":
		fits = hasOld && !hasNew
	case "":
	default:
		return &dynamojson.Fault{Code: codeImages, Reason: "eventName " + shorten(d.name) + " is not INSERT, MODIFY or REMOVE"}
	}
	if fits {
		return nil
	}
	return &dynamojson.Fault{Code: codeImages, Reason: "the images do not fit the eventName " + shorten(d.name)}
}

// id names a parked record, always the same one: by its position, otherwise by its content.
func (e *element) id() string {
	if position := e.record.Position; !position.IsZero() {
		return position.String()
	}
	sum := sha256.Sum256(e.raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}
