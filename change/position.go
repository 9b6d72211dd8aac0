package change

import (
	"fmt"
	"strings"
)

// SequenceDigitsMax is the greatest length of a stream's sequence number
// (DynamoDB Streams API, StreamRecord: 21 to 40 digits). Emulators use fewer.
const SequenceDigitsMax = 40

// Position says where a change stands in the history of its item: the stream's
// label, which rises with every stream that the table is given, and the
// sequence number as an integer. The zero Position is before every other.
type Position struct {
	epoch    string
	sequence string // zero-padded to SequenceDigitsMax
}

// NewPosition makes a Position from a stream label and a decimal sequence
// number of any length up to SequenceDigitsMax. It keeps no part of the number, so that callers can
// convert bytes to one without a copy on the heap.
func NewPosition(streamLabel, sequenceNumber string) (Position, error) {
	if sequenceNumber == "" || len(sequenceNumber) > SequenceDigitsMax {
		return Position{}, fmt.Errorf("sequence number %q: want 1 to %d digits", strings.Clone(sequenceNumber), SequenceDigitsMax)
	}
	for i := range len(sequenceNumber) {
		if c := sequenceNumber[i]; c < '0' || c > '9' {
			return Position{}, fmt.Errorf("sequence number %q: %q is not a digit", strings.Clone(sequenceNumber), c)
		}
	}
	if streamLabel == "" || strings.ContainsAny(streamLabel, "#|") {
		return Position{}, fmt.Errorf("stream label %q: want a text without # and |", streamLabel)
	}
	padded := strings.Repeat("0", SequenceDigitsMax-len(sequenceNumber)) + sequenceNumber
	return Position{epoch: streamLabel, sequence: padded}, nil
}

// Epoch returns the stream label.
func (p Position) Epoch() string { return p.epoch }

// SequenceNumber returns the sequence number without leading zeros.
func (p Position) SequenceNumber() string {
	if s := strings.TrimLeft(p.sequence, "0"); s != "" || p.sequence == "" {
		return s
	}
	return "0"
}

// IsZero reports whether p is the zero Position.
func (p Position) IsZero() bool { return p.sequence == "" }

// Compare returns -1, 0 or 1: by stream label, then by sequence number as an integer.
func (p Position) Compare(q Position) int {
	if c := strings.Compare(p.epoch, q.epoch); c != 0 {
		return c
	}
	return strings.Compare(p.sequence, q.sequence)
}

// String returns the position as a text that sorts as Compare does: label,
// "#", and the sequence number padded with zeros; "" for the zero Position.
func (p Position) String() string {
	if p.IsZero() {
		return ""
	}
	return p.epoch + "#" + p.sequence
}

// ParsePosition reads what String wrote.
func ParsePosition(text string) (Position, error) {
	if text == "" {
		return Position{}, nil
	}
	label, sequence, ok := strings.Cut(text, "#")
	if !ok {
		return Position{}, fmt.Errorf("position %q: no #", text)
	}
	return NewPosition(label, sequence)
}
