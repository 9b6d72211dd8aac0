// Package spelling tells how far a misspelt word is from one that is known. It imports nothing of the module.
package spelling

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
