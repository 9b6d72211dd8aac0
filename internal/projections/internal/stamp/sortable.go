package stamp

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// digits are those of numbers, contexts and digests, in the order in which DynamoDB compares texts.
const digits = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

const (
	bitsInDigit = 6
	// aloneMax is above every number that is one digit alone. A digit from there on tells
	// how many digits of a higher number follow.
	aloneMax = 52
)

// appendDigits appends the lowest digits of a number.
func appendDigits(text []byte, n uint64, length int) []byte {
	for i := length - 1; i >= 0; i-- {
		text = append(text, digits[n>>(i*bitsInDigit)%uint64(len(digits))])
	}
	return text
}

// readDigits reads what appendDigits wrote.
func readDigits(text string) (n uint64, ok bool) {
	for i := range len(text) {
		d := strings.IndexByte(digits, text[i])
		if d < 0 {
			return 0, false
		}
		n = n<<bitsInDigit | uint64(d)
	}
	return n, true
}

// CutDigits divides a text behind the digits with which it begins: those of a rule's id.
func CutDigits(text string) (before, behind string) {
	behind = strings.TrimLeft(text, digits)
	return text[:len(text)-len(behind)], behind
}

// lengthOf is how many digits a number has; 0 has none.
func lengthOf(n uint64) int { return (bits.Len64(n) + bitsInDigit - 1) / bitsInDigit }

// appendNumber appends a number as a text that sorts as it compares, whatever follows it.
func appendNumber(text []byte, n uint64) []byte {
	if n < aloneMax {
		return append(text, digits[n])
	}
	length := lengthOf(n)
	return appendDigits(append(text, digits[aloneMax-1+length]), n, length)
}

// cutNumber reads what appendNumber wrote at the beginning of a text.
func cutNumber(text string) (n uint64, rest string, ok bool) {
	if text == "" {
		return 0, "", false
	}
	first := strings.IndexByte(digits, text[0])
	if first < aloneMax {
		return uint64(max(first, 0)), text[1:], first >= 0
	}
	length := first - aloneMax + 1
	if len(text) <= length {
		return 0, "", false
	}
	n, ok = readDigits(text[1 : 1+length])
	return n, text[1+length:], ok && lengthOf(n) == length && n >= aloneMax
}

// A sequence number is written in groups of nine decimal digits, each of which takes five of
// ours. The first group takes as many as it needs, and their number stands before it.
const (
	decimalsInGroup = 9
	digitsInGroup   = 5
	decimalsEnd     = 1e9 // above every group
)

// appendSequence appends a sequence number without leading zeros as a text that sorts as it compares.
func appendSequence(text []byte, decimals string) []byte {
	first := (len(decimals)-1)%decimalsInGroup + 1
	n, _ := strconv.ParseUint(decimals[:first], 10, 64) // a position holds nothing but digits
	length := lengthOf(n)
	text = append(text, digits[length+(len(decimals)-first)/decimalsInGroup*digitsInGroup])
	text = appendDigits(text, n, length)
	for decimals = decimals[first:]; decimals != ""; decimals = decimals[decimalsInGroup:] {
		n, _ = strconv.ParseUint(decimals[:decimalsInGroup], 10, 64)
		text = appendDigits(text, n, digitsInGroup)
	}
	return text
}

// plainGroupsMax is how many whole groups a sequence number surely can have: change.NewPosition takes 40 decimals.
const plainGroupsMax = 3

// skipPlainSequence reads over what appendSequence wrote, but not over every number.
func skipPlainSequence(text string) (rest string, ok bool) {
	if text == "" {
		return "", false
	}
	length := strings.IndexByte(digits, text[0])
	if length <= 0 || len(text) <= length {
		return "", false
	}
	groups := (length - 1) / digitsInGroup
	end := 1 + length - groups*digitsInGroup
	n, ok := readDigits(text[1:end])
	ok = ok && lengthOf(n) == end-1 && n < decimalsEnd && groups <= plainGroupsMax
	for ; ok && end <= length; end += digitsInGroup {
		n, ok = readDigits(text[end : end+digitsInGroup])
		ok = ok && n < decimalsEnd
	}
	return text[1+length:], ok
}

// cutSequence reads what appendSequence wrote, or more than that: ParseVersion compares what it read.
func cutSequence(text string) (decimals, rest string, ok bool) {
	if text == "" {
		return "", "", false
	}
	length := strings.IndexByte(digits, text[0])
	if length < 0 || len(text) <= length {
		return "", "", false
	}
	group, rest := text[1:1+length], text[1+length:]
	first := length - max(length-1, 0)/digitsInGroup*digitsInGroup
	n, ok := readDigits(group[:first])
	decimals = strconv.FormatUint(n, 10)
	for group = group[first:]; group != "" && ok; group = group[digitsInGroup:] {
		n, ok = readDigits(group[:digitsInGroup])
		decimals += fmt.Sprintf("%09d", n)
	}
	return decimals, rest, ok
}
