package templates

import (
	"slices"
	"strings"
)

// piece is one step of a template as an automaton: a byte, or a variable,
// which takes one or more bytes.
type piece struct {
	literal        byte
	variable, rest bool
}

func (t *Template) pieces() []piece {
	var ts []piece
	for _, p := range t.parts {
		if p.slot != literalPart {
			ts = append(ts, piece{variable: true, rest: p.rest})
			continue
		}
		for i := range len(p.literal) {
			ts = append(ts, piece{literal: p.literal[i]})
		}
	}
	return ts
}

// state is a pair of places in two automata. inA and inB say that the variable
// there has taken a byte already, so that it may end.
type state struct {
	i, j     int
	inA, inB bool
}

// CommonText finds a shortest text that both templates match: a breadth-first
// search through the product of the two automata.
func CommonText(a, b *Template, budget *int) (string, bool) {
	ta, tb := a.pieces(), b.pieces()
	type step struct {
		from int // index in queue
		char byte
		at   state
	}
	queue := []step{{from: -1}}
	seen := map[state]bool{{}: true}
	for n := 0; n < len(queue) && *budget > 0; n++ {
		*budget--
		at := queue[n].at
		if ended(ta, at.i, at.inA) && ended(tb, at.j, at.inB) {
			var text []byte
			for k := n; queue[k].from >= 0; k = queue[k].from {
				text = append(text, queue[k].char)
			}
			slices.Reverse(text)
			return strings.ToValidUTF8(string(text), "?"), true
		}
		for _, x := range moves(ta, at.i, at.inA) {
			for _, y := range moves(tb, at.j, at.inB) {
				char, ok := meet(x.by, y.by)
				next := state{x.at, y.at, x.in, y.in}
				if ok && !seen[next] {
					seen[next] = true
					queue = append(queue, step{n, char, next})
				}
			}
		}
	}
	return "", false
}

// ended reports whether a text may end at place i.
func ended(ts []piece, i int, in bool) bool {
	return i == len(ts) || in && i == len(ts)-1
}

type move struct {
	by piece
	at int
	in bool
}

// moves lists what can be read next at place i.
func moves(ts []piece, i int, in bool) []move {
	var ms []move
	if in { // the variable at i goes on, or ends before the next piece
		ms = append(ms, move{ts[i], i, true})
		i++
	}
	if i < len(ts) {
		if ts[i].variable {
			ms = append(ms, move{ts[i], i, true})
		} else {
			ms = append(ms, move{ts[i], i + 1, false})
		}
	}
	return ms
}

// meet gives a byte that both pieces take.
func meet(a, b piece) (byte, bool) {
	switch {
	case a.variable && b.variable:
		return 'x', true
	case a.variable:
		return b.literal, b.literal != '#' || a.rest
	case b.variable:
		return a.literal, a.literal != '#' || b.rest
	}
	return a.literal, a.literal == b.literal
}
