package oracle

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/dynamill/dynamill/change"
)

// Stamp is what the engine's mark on a target says (docs/state-table.md).
type Stamp struct {
	Context string
	Version string // with how often the item was filled or rederived
	Digest  string
	epoch   int64
	place   string // position or count; "" if none
}

const (
	digits        = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
	contextDigits = 8
)

// RuleID is the id that the registry gives to the first rule of a name.
func RuleID(name string) string {
	id := ShortDigest(2, change.String(name))
	for n := 2; id[0] == '-'; n++ {
		id = ShortDigest(2, change.String(name+"-"+strconv.Itoa(n)))
	}
	return id
}

// ReadStamp reads a mark. It reports false for a text that is none.
func ReadStamp(text string) (s Stamp, ok bool) {
	if len(text) < contextDigits {
		return Stamp{}, false
	}
	epoch, place, rest, ok := cutVersion(text[contextDigits:])
	_, rest, times := cutNumber(rest)
	s = Stamp{Context: text[:contextDigits], epoch: epoch, place: place, Digest: rest}
	s.Version = text[contextDigits : len(text)-len(rest)]
	return s, ok && times && strings.Trim(rest, digits) == ""
}

// Count is the count of operations and changes that a mark has in the place of a position; 0 if it has none.
func (s Stamp) Count() int64 {
	text, ok := strings.CutPrefix(s.place, "0")
	n, _, _ := cutNumber(text)
	if !ok {
		return 0
	}
	return n
}

// cutVersion reads a version at the beginning of a text: the rules epoch, and the position or count.
func cutVersion(text string) (epoch int64, place, rest string, ok bool) {
	epoch, rest, ok = cutNumber(text)
	if !ok || rest == "" {
		return 0, "", "", false
	}
	text = rest
	switch text[0] {
	case '-':
		return epoch, "", text[1:], true
	case '0':
		_, rest, ok = cutNumber(text[1:])
		return epoch, text[:len(text)-len(rest)], rest, ok
	case 'z':
		_, rest, ok = strings.Cut(text, "#")
	default:
		rest = text[min(7, len(text)):]
	}
	if !ok || rest == "" {
		return 0, "", "", false
	}
	length := strings.IndexByte(digits, rest[0])
	if length < 0 || len(rest) <= length {
		return 0, "", "", false
	}
	rest = rest[1+length:]
	return epoch, text[:len(text)-len(rest)], rest, true
}

// cutNumber reads a number at the beginning of a text: one digit up to 51, or so many digits behind a higher one.
func cutNumber(text string) (n int64, rest string, ok bool) {
	if text == "" {
		return 0, "", false
	}
	first := strings.IndexByte(digits, text[0])
	if first <= 51 {
		return int64(first), text[1:], first >= 0
	}
	length := first - 51
	if len(text) <= length || strings.Trim(text[1:1+length], digits) != "" {
		return 0, "", false
	}
	for _, c := range text[1 : 1+length] {
		n = n*64 + int64(strings.IndexRune(digits, c))
	}
	return n, text[1+length:], true
}

// ShortDigest is the beginning of a digest of values, in so many digits of 6 bits each.
func ShortDigest(length int, values ...change.Value) string {
	n, _ := new(big.Int).SetString(change.Digest(values...), 16)
	n.Rsh(n, uint(64-6*length))
	text := ""
	for range length {
		digit := new(big.Int)
		n.DivMod(n, big.NewInt(64), digit)
		text = digits[digit.Int64():digit.Int64()+1] + text
	}
	return text
}
