package handlers

import (
	"iter"
	"strconv"
	"sync/atomic"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/dynamojson"
)

// image is a change.Image over validated JSON that decodes an attribute at its first lookup. It is safe for concurrent use.
type image struct {
	src        []byte // of the whole batch
	attributes []attribute
	decoded    atomic.Pointer[decoded] // most recent first
}

// attribute is where one attribute lies in src, which is far smaller than 4 GB.
type attribute struct {
	name, nameEnd  uint32
	value, escaped uint32 // escaped is 1 if the name holds a backslash
}

// decoded is a list of attributes that were looked up.
type decoded struct {
	index int
	value change.Value
	next  *decoded
}

// Lookup decodes one attribute.
func (im *image) Lookup(name string) change.Value {
	for i := range im.attributes {
		if string(im.name(i)) == name {
			return im.at(i)
		}
	}
	return change.Value{}
}

func (im *image) name(i int) []byte {
	a := &im.attributes[i]
	if a.escaped != 0 {
		return dynamojson.Unescape(im.src[a.name:a.nameEnd])
	}
	return im.src[a.name:a.nameEnd]
}

// at returns the value of the attribute with this index. Rules look up few: walking the list is cheaper than a map.
func (im *image) at(i int) change.Value {
	head := im.decoded.Load()
	for d := head; d != nil; d = d.next {
		if d.index == i {
			return d.value
		}
	}
	d := &decoded{index: i, value: im.decode(i), next: head}
	// A goroutine that loses the race for the place in the list decodes once more later.
	im.decoded.CompareAndSwap(head, d)
	return d.value
}

func (im *image) decode(i int) (v change.Value) {
	s := dynamojson.Scanner{Src: im.src, Pos: int(im.attributes[i].value)}
	if !s.Value(0, &v) {
		panic("handlers: the image was validated: " + s.Fault.Reason)
	}
	return v
}

// All decodes every attribute. It keeps none: an item may have tens of thousands.
func (im *image) All() iter.Seq2[string, change.Value] {
	return func(yield func(string, change.Value) bool) {
		seen := make(map[string]bool, len(im.attributes))
		for i := range im.attributes {
			name := string(im.name(i))
			if seen[name] {
				continue // as in Lookup, the first of two counts
			}
			seen[name] = true
			if !yield(name, im.decode(i)) {
				return
			}
		}
	}
}

// imageArena makes images in large pieces: two allocations for hundreds of them.
type imageArena struct {
	images     []image
	attributes []attribute
}

const (
	arenaImages     = 256
	arenaAttributes = 4096
)

// read validates an image and remembers where its attributes are; nil for an object without attributes.
func (ar *imageArena) read(s *dynamojson.Scanner) (*image, bool) {
	if s.Next() != '{' {
		return nil, s.Fail(codeImages, "an image that is no object")
	}
	first := len(ar.attributes)
	ok := s.Object(func(name dynamojson.Text) bool {
		if name.Half {
			return s.HalfText()
		}
		a := attribute{name: uint32(name.From), nameEnd: uint32(name.To)}
		if name.Escaped {
			a.escaped = 1
		}
		s.Next()
		a.value = uint32(s.Pos)
		if len(ar.attributes) == cap(ar.attributes) {
			first = ar.grow(first)
		}
		ar.attributes = append(ar.attributes, a)
		if s.Value(0, nil) {
			return true
		}
		s.Fault.Reason = "attribute " + shorten(s.Bytes(name)) + ": " + s.Fault.Reason
		return false
	})
	if !ok {
		ar.attributes = ar.attributes[:first]
		return nil, false
	}
	if first == len(ar.attributes) {
		return nil, true
	}
	if len(ar.images) == cap(ar.images) {
		ar.images = make([]image, 0, arenaImages)
	}
	ar.images = ar.images[:len(ar.images)+1]
	im := &ar.images[len(ar.images)-1]
	im.src, im.attributes = s.Src, ar.attributes[first:len(ar.attributes):len(ar.attributes)]
	return im, true
}

// grow begins a new piece for attributes, to which those of the image under way move.
func (ar *imageArena) grow(first int) int {
	under := ar.attributes[first:]
	ar.attributes = append(make([]attribute, 0, max(arenaAttributes, 2*len(under))), under...)
	return 0
}

// shorten quotes a text of unknown length for a message.
func shorten(b []byte) string {
	const shown = 40
	if len(b) > shown {
		return strconv.Quote(string(b[:shown])) + "..."
	}
	return strconv.Quote(string(b))
}
