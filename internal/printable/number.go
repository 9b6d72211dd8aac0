package printable

import "strconv"

// Grouped writes a number with its thousands parted: 12,345.
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Counted is a number with its noun: 1 rule, 12,345 rules.
func Counted(n int64, noun string) string { return Grouped(n) + " " + Plural(n, noun) }

// Plural is a noun in the number of n.
func Plural(n int64, noun string) string { return Verb(n, noun, noun+"s") }

// Verb is one of two forms: that for one, or that for many.
func Verb(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
