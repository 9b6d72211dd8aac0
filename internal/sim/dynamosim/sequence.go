package dynamosim

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// sequence is a stream's sequence number: high * 10^18 + low.
type sequence struct{ high, low uint64 }

const lowEnd = 1_000_000_000_000_000_000

// firstSequence is where every stream starts: about thirty changes follow with
// 21 digits before there are 22, so that numbers compared as texts are found out.
var firstSequence = sequence{999, 999_999_999_999_999_900}

func parseSequence(text string) (sequence, error) {
	if text == "" || len(text) > 36 || strings.Trim(text, "0123456789") != "" {
		return sequence{}, fmt.Errorf("sequence number %q: want 1 to 36 digits", text)
	}
	padded := fmt.Sprintf("%036s", text)
	high, _ := strconv.ParseUint(padded[:18], 10, 64)
	low, _ := strconv.ParseUint(padded[18:], 10, 64)
	return sequence{high, low}, nil
}

func (q sequence) String() string {
	if q.high == 0 {
		return strconv.FormatUint(q.low, 10)
	}
	return fmt.Sprintf("%d%018d", q.high, q.low)
}

func (q sequence) compare(r sequence) int {
	return cmp.Or(cmp.Compare(q.high, r.high), cmp.Compare(q.low, r.low))
}

// takeSequence returns the stream's next sequence number. The gaps between them
// are the seed's. Every stream begins anew, for AWS promises no order between streams.
func (s *Sim) takeSequence(st *stream) sequence {
	st.last.low += 1 + s.random.Uint64N(5)
	if st.last.low >= lowEnd {
		st.last = sequence{st.last.high + 1, st.last.low - lowEnd}
	}
	return st.last
}
