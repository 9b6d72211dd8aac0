package demo

import (
	"fmt"
	"strconv"
)

// units shows write units without needless decimals.
func units(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// several says how many of something there are.
func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
