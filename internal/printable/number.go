package printable

import "strconv"

// number is a count, of whichever width its owner holds it in.
type number interface{ ~int | ~int64 }

// Grouped writes a number with its thousands parted: 12,345.
func Grouped[N number](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Rounded is Grouped for a number with a fraction.
func Rounded(n float64) string { return Grouped(int64(n + 0.5)) }

// Counted is a number with its noun: 1 rule, 12,345 rules.
func Counted[N number](n N, noun string) string { return Grouped(n) + " " + Plural(n, noun) }

// Plural is a noun in the number of n.
func Plural[N number](n N, noun string) string { return Verb(n, noun, noun+"s") }

// Verb is one of two forms: that for one, or that for many.
func Verb[N number](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
