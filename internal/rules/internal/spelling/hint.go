package spelling

import "strings"

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
	switch {
	case len(candidates) == 0:
		return ""
	case len(candidates) > listedMax:
		return "there are " + strings.Join(candidates[:listedMax], ", ") + " and others"
	case len(candidates) == 1:
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
