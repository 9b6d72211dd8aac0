package templates

import "slices"

// piece is one step of a template as an automaton: a character, or one that a variable takes. A variable is two
// pieces: its first character, and any number of more. A padded number is a piece for each digit.
type piece struct {
	literal              rune
	variable, rest, more bool
	digit                bool
	in                   Case
}

func (t *Template) pieces() []piece {
	var ts []piece
	for _, p := range t.parts {
		one := piece{variable: true, rest: p.rest, in: p.format.Case, digit: p.format.Width > 0}
		switch {
		case p.slot == literalPart:
			for _, char := range p.literal {
				ts = append(ts, piece{literal: char})
			}
		case one.digit:
			ts = append(ts, slices.Repeat([]piece{one}, p.format.Width)...)
		default:
			ts = append(ts, one)
			one.more = true
			ts = append(ts, one)
		}
	}
	return ts
}

// CommonText finds a shortest text that both templates match: a breadth-first
// search through the product of the two automata.
func CommonText(a, b *Template, budget *int) (string, bool) {
	ta, tb := a.pieces(), b.pieces()
	type state struct{ i, j int } // places in the two automata
	type step struct {
		from int // index in queue
		char rune
		at   state
	}
	queue := []step{{from: -1}}
	seen := map[state]bool{{}: true}
	for n := 0; n < len(queue) && *budget > 0; n++ {
		*budget--
		at := queue[n].at
		if ended(ta, at.i) && ended(tb, at.j) {
			var text []rune
			for k := n; queue[k].from >= 0; k = queue[k].from {
				text = append(text, queue[k].char)
			}
			slices.Reverse(text)
			return string(text), true
		}
		for _, x := range moves(ta, at.i) {
			for _, y := range moves(tb, at.j) {
				char, ok := meet(x.by, y.by)
				next := state{x.at, y.at}
				if ok && !seen[next] {
					seen[next] = true
					queue = append(queue, step{n, char, next})
				}
			}
		}
	}
	return "", false
}

func ended(ts []piece, i int) bool { return i == len(ts) || i == len(ts)-1 && ts[i].more }

type move struct {
	by piece
	at int
}

func moves(ts []piece, i int) []move {
	var ms []move
	if i < len(ts) && ts[i].more { // the variable goes on, or ends before the next piece
		ms = append(ms, move{ts[i], i})
		i++
	}
	if i < len(ts) {
		ms = append(ms, move{ts[i], i + 1})
	}
	return ms
}

// meet gives a character that both pieces take.
func meet(a, b piece) (rune, bool) {
	if !a.variable {
		return a.literal, b.takes(a.literal)
	}
	if !b.variable {
		return b.literal, a.takes(b.literal)
	}
	for _, char := range "xX1" {
		if a.takes(char) && b.takes(char) {
			return char, true
		}
	}
	return 0, false
}

// takes reports whether a piece takes a character.
func (p piece) takes(char rune) bool {
	switch {
	case !p.variable:
		return char == p.literal
	case p.digit:
		return char >= '0' && char <= '9'
	case char == '#':
		return p.rest
	}
	return p.in.char(char) == char
}
