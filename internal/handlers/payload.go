package handlers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/internal/dynamojson"
)

// shape is what kind of payload an invocation has.
type shape uint8

// The payloads with records are described in the Lambda developer guide ("Using Lambda with DynamoDB", "Using Lambda with
// SQS", "Retain discarded records for a DynamoDB event source") and the EventBridge user guide ("Pipes batching and
// concurrency").
const (
	shapeStream shape = iota + 1 // {"Records": [stream records]}, of an event source mapping
	shapeQueue                   // {"Records": [SQS messages]}; each body is a stream record
	shapePipe                    // a list of stream records or SQS messages
	shapeLate                    // a late batch: the object in S3, whose payload holds the event
	shapeTasks                   // {"dynamill":"tasks"}, of a schedule
	shapeNamed                   // {"dynamill":"late","object":"s3://bucket/key"}, the name of a late batch
	shapeReplay                  // {"dynamill":"replay",...}, of a state machine
)

func (s shape) String() string {
	return [...]string{"unknown", "stream", "queue", "pipe", "late batch", "tasks", "name of a late batch", "replay"}[s]
}

// isCommand reports whether a payload of the shape has no records.
func (s shape) isCommand() bool { return s == shapeTasks || s == shapeReplay }

// answersByRecord reports whether an answer names the records that come again. To other payloads a failure is an error.
func (s shape) answersByRecord() bool { return s == shapeStream || s == shapeQueue || s == shapePipe }

// batch is what was found in a payload. Everything in it points into the payload.
type batch struct {
	shape    shape
	command  command // of a payload without records
	elements []element
	good     []int // the elements that are not malformed, in the order in which they are to be applied
}

// PayloadError says that a payload as a whole is none that a Handler knows.
type PayloadError struct{ Reason string }

func (e *PayloadError) Error() string { return "payload: " + e.Reason }

func payloadErrorf(format string, args ...any) error {
	return &PayloadError{fmt.Sprintf(format, args...)}
}

// batchReader finds a batch in a payload.
type batchReader struct {
	recordReader
	batch
	kind       kind   // of the elements
	foreign    []byte // the first event source that is neither DynamoDB nor SQS
	view       []byte // the first view type that does not carry both images
	otherTable []byte // the first stream that is another table's
}

// readBatch finds the records in a payload.
func readBatch(payload []byte, cfg *Config) (*batch, error) {
	r := &batchReader{recordReader: recordReader{table: cfg.Table, partition: cfg.PartitionKey, sort: cfg.SortKey}}
	if err := r.payload(payload); err != nil {
		return nil, err
	}
	if r.shape != shapeLate {
		r.order()
	}
	return &r.batch, nil
}

func (r *batchReader) payload(src []byte) error {
	s := &dynamojson.Scanner{Src: src}
	switch s.Next() {
	case '[':
		r.shape = shapePipe
		if err := checkRead(s, r.elementList(s)); err != nil {
			return err
		}
		return r.check("a list")
	case '{':
		return r.event(s, false)
	case 0:
		return payloadErrorf("it is empty")
	}
	return payloadErrorf("want an object or a list, found %s", shorten(s.Src[s.Pos:]))
}

// envelope is what the top-level object of a payload holds beside records.
type envelope struct {
	records, late, window, command bool
	payload                        []byte   // raw JSON; nil if there is none
	names                          []string // of its fields
}

// event reads a payload that is an object.
func (r *batchReader) event(s *dynamojson.Scanner, late bool) error {
	var env envelope
	read := s.Object(func(name dynamojson.Text) bool { return r.eventField(s, name, &env) })
	if err := checkRead(s, read); err != nil {
		return err
	}
	switch {
	case env.command && !late:
		return r.readCommand(s.Src, env.records || env.late)
	case env.window:
		// Retried records of a window "might be processed out of order", and the answer would have to carry a state.
		return payloadErrorf("an event of a tumbling window: remove TumblingWindowInSeconds from the event source mapping")
	case env.records:
		r.shape = shapeStream
		if late {
			r.shape = shapeLate
		} else if r.kind == kindMessage {
			r.shape = shapeQueue
		}
		return r.check("an event")
	case env.late && env.payload != nil && !late:
		return r.lateEvent(env.payload)
	case env.late:
		return payloadErrorf("a report of a late batch without its records (destinations other than S3 carry none): name an S3 bucket as the " +
			"on-failure destination, and run `dynamill replay --restart`, as docs/replay.md says")
	}
	return payloadErrorf("want stream records or SQS messages, found an object with %s", strings.Join(env.names, ", "))
}

func (r *batchReader) eventField(s *dynamojson.Scanner, name dynamojson.Text, env *envelope) bool {
	const namesMax = 5
	field := string(s.Bytes(name))
	if len(env.names) < namesMax {
		env.names = append(env.names, shorten([]byte(field)))
	}
	switch field {
	case "Records":
		if env.records {
			return s.Fail(dynamojson.CodeJSON, "two fields Records")
		}
		if s.Next() == '[' {
			env.records = true
			return r.elementList(s)
		}
	case "DDBStreamBatchInfo":
		env.late = true
	case "payload":
		return s.Raw(&env.payload)
	case "dynamill":
		env.command = true
	case "window":
		env.window = s.Next() == '{'
	}
	return s.Skip(0)
}

// lateEvent reads the event in a late batch's object: as JSON, or as a string that holds JSON.
func (r *batchReader) lateEvent(payload []byte) error {
	if payload[0] == '"' {
		payload = dynamojson.Unescape(payload[1 : len(payload)-1])
	}
	s := &dynamojson.Scanner{Src: payload}
	if s.Next() != '{' {
		return payloadErrorf("the payload of a late batch is no event: %s", shorten(payload))
	}
	return r.event(s, true)
}

func (r *batchReader) elementList(s *dynamojson.Scanner) bool {
	return s.Array(func() bool {
		from := s.Pos
		if !r.element(s) {
			return false
		}
		if len(r.elements) == 1 { // the first tells about how many there are
			n := min(len(s.Src)/(s.Pos-from)+1, elementsExpectedMax)
			r.elements = append(make([]element, 0, n), r.elements...)
			r.good = append(make([]int, 0, n), r.good...)
		}
		return true
	})
}

// elementsExpectedMax bounds the guess of how many records a payload holds (Lambda delivers no more).
const elementsExpectedMax = 10_000

// element reads one record or message and files it.
func (r *batchReader) element(s *dynamojson.Scanner) bool {
	r.elements = append(r.elements, element{})
	e := &r.elements[len(r.elements)-1]
	var d draft
	if !r.read(s, e, &d) {
		return false
	}
	switch {
	case e.kind == kindForeign && r.foreign == nil:
		r.foreign = d.source
	case e.kind == kindMessage && d.hasMessageBody:
		d = r.message(s, e, d)
	case e.kind == kindMessage:
		e.fault = &dynamojson.Fault{Code: dynamojson.CodeJSON, Reason: "the message has no body"}
	}
	if e.kind != kindUnknown && r.kind == kindUnknown {
		r.kind = e.kind
	} else if e.kind != kindUnknown && r.kind != e.kind {
		r.kind = kindForeign
	}
	r.checkOrigin(e, &d)
	d.finish(e)
	if e.fault == nil {
		r.good = append(r.good, len(r.elements)-1)
	}
	return true
}

// checkOrigin looks where a record comes from. A stream's whole batch comes from there; a message in the wrong queue must
// not hold up its neighbours, nor have an item rederived for a position of another stream.
func (r *batchReader) checkOrigin(e *element, d *draft) {
	view := string(d.view) != "" && string(d.view) != viewWanted
	switch {
	case e.kind != kindMessage:
		if view && r.view == nil {
			r.view = d.view
		}
		if d.otherTable && r.otherTable == nil {
			r.otherTable = r.arn
		}
	case d.otherTable:
		e.fault, e.hasKey = &dynamojson.Fault{Code: codeTable, Reason: fmt.Sprintf("it is of %s, not of table %s", r.arn, r.table)}, false
	case view && e.fault == nil:
		e.fault = &dynamojson.Fault{Code: codeImages, Reason: fmt.Sprintf("the stream's view type is %s: it must be %s", shorten(d.view),
			viewWanted)}
	}
}

// viewWanted is the only stream view type that says what a change took away.
const viewWanted = "NEW_AND_OLD_IMAGES"

// message reads the stream record in a message's body.
func (r *batchReader) message(outer *dynamojson.Scanner, e *element, d draft) draft {
	body := outer.Bytes(d.messageBody)
	inner, record := dynamojson.Scanner{Src: body}, draft{}
	found := element{kind: kindMessage, messageID: e.messageID}
	whole := r.read(&inner, &found, &record) && inner.AtEnd()
	switch {
	case found.fault != nil:
	case !whole:
		found.fault = &dynamojson.Fault{Code: dynamojson.CodeJSON, Reason: "the message's body is no JSON"}
	case found.kind != kindRecord:
		found.fault = &dynamojson.Fault{Code: dynamojson.CodeJSON, Reason: "the message's body is no stream record"}
	}
	found.kind, found.messageID, found.raw = kindMessage, e.messageID, body
	*e = found
	return record
}

// check says what is wrong with the elements as a whole.
func (r *batchReader) check(what string) error {
	switch {
	case r.foreign != nil:
		return payloadErrorf("want stream records or SQS messages, found %s with records from %s", what, shorten(r.foreign))
	case r.kind == kindForeign:
		return payloadErrorf("%s with both stream records and SQS messages", what)
	case r.kind == kindUnknown && len(r.elements) > 0:
		return payloadErrorf("want stream records or SQS messages, found %s of something else: %s", what, shorten(r.elements[0].raw))
	case r.kind == kindMessage && r.shape == shapeLate:
		return payloadErrorf("a late batch of SQS messages: only batches of stream records are known")
	case r.otherTable != nil:
		return payloadErrorf("records of %s: this function works for table %s", r.otherTable, r.table)
	case r.view != nil && r.shape != shapeLate: // a late batch is asked for its keys only
		return payloadErrorf("the stream's view type is %s: it must be %s", shorten(r.view), viewWanted)
	}
	return nil
}

// order brings records into the order of their positions, which a Processor is promised for those of one item. A
// queue's messages may overtake each other.
func (r *batchReader) order() {
	slices.SortStableFunc(r.good, func(i, j int) int {
		return r.elements[i].record.Position.Compare(r.elements[j].record.Position)
	})
}

// checkRead reports what is wrong with a payload's JSON: it could not be read, or something follows its end.
func checkRead(s *dynamojson.Scanner, read bool) error {
	switch {
	case !read:
		return payloadErrorf("it cannot be read: %s", s.Fault.Reason)
	case !s.AtEnd():
		return payloadErrorf("something follows its end: %s", shorten(s.Src[s.Pos:]))
	}
	return nil
}
