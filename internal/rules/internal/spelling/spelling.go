// Package spelling tells how far a misspelt word is from one that is known. It imports nothing of the module.
package spelling

import "strings"

// Distance is the number of letters to insert, delete or replace; 64 if a word is longer than that.
func Distance(a, b string) int {
	const comparedMax = 64
	if len(a) > comparedMax || len(b) > comparedMax {
		return comparedMax
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// DidYouMean returns a hint that names the candidate nearest to word, or, if
// none is near, lists them; "" if there are none.
func DidYouMean(word string, candidates []string) string {
	best, bestDistance := "", nearMax(word)+1
	for _, c := range candidates {
		if d := Distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	const listedMax = 12
	switch n := len(candidates); {
	case n == 0:
		return ""
	case n > listedMax:
		return "there are " + strings.Join(candidates[:listedMax], ", ") + " and others"
	case n == 1:
		return "there is only " + candidates[0]
	}
	return "there are " + strings.Join(candidates, ", ")
}

// nearMax is how many edits a misspelling of the word may be away.
func nearMax(word string) int { return len(word)/3 + 1 }

// Near reports whether word could be a misspelling of name.
func Near(word, name string) bool {
	return Distance(strings.ToLower(word), strings.ToLower(name)) <= nearMax(word)
}
