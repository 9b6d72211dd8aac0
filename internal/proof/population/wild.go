package population

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// The longest keys that DynamoDB allows, in bytes, by the place of the key.
var keyBytesMax = [...]int{2048, 1024}

// wild says in what a population goes to the edges of what DynamoDB holds. Of a
// nil one, nothing does.
type wild struct {
	r        *rand.Rand
	words    bool // ids with characters that separate, escape or look alike
	long     bool // ids as long as keys can be, and longer
	full     bool // ids with which each key that holds them is full
	amounts  bool // numbers of all sizes
	shapes   bool // values of every type
	crowded  bool // lists of many elements
	squatted bool // the application writes where mirror items belong
}

// Wild returns a population of the same rule file whose items go to the edges
// of what DynamoDB holds, in some ways that it draws. Whether keys are full it draws as forms are drawn, so that the draws of
// everything else stay what they are beside it.
func (p *Population) Wild(r *rand.Rand) *Population {
	w := &wild{r: r}
	for _, way := range []*bool{&w.words, &w.long, &w.amounts, &w.shapes, &w.squatted} {
		*way = r.IntN(5) < 2
	}
	w.crowded = r.IntN(6) == 0
	w.full = forms{file: p.File}.draws(60, fmt.Sprint("full ", w.words, w.long, w.amounts, w.shapes, w.crowded, w.squatted))
	wilder, err := newPopulation(p.Name, p.File, p.Set.Kinds(), w)
	if err != nil {
		panic("population: a rule file is refused that was accepted: " + err.Error())
	}
	return wilder
}

// idPairs are pairs of ids that differ in little, or hold what separates and escapes in keys elsewhere.
var idPairs = [...][2]string{
	{"a/b", "a%2Fb"}, {"a", "a/"}, {"/", "//"}, {"%", "%25"}, {"!1", "1"}, {"@a", "a"}, {"~", "a~0"}, {"a|b", "a"},
	{"x y", "x"}, {" ", "  "}, {"a ", " a"}, {"\u00e9", "e\u0301"}, {"\U0001f600", "\U0001f600\u200d"}, {"\x00", "\x01"}, {"a\n", "a\t"},
	{"A", "a"}, {"${a}", "{a}"}, {"\"", "'"}, {"=1", "+1"}, {"1|", "|1"}, {"a.b", "a,b"}, {"ß", "ss"}, {"\ufeffa", "a"}, {"_dm", "_dm_"},
}

// extremes are amounts that hardly any other can be added to.
var extremes = [...]string{
	"1e125", "-1e125", "1e-125", "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "1e40", "-1e40",
	"0.00000000000000000000000000000000000001", "1.2345678901234567890123456789012345678",
}

// numberPairs are two numbers, as number keys have them.
var numberPairs = [...][2]string{
	{"-1", "1"}, {"0", "0.5"}, {"100000000000000000000", "1e40"}, {"1e-125", "1e125"}, {"99999999999999999999999999999999999999", "2"},
}

// pair draws two ids.
func (w *wild) pair(stem string) [2]string {
	if w == nil || !w.words {
		return [2]string{stem + "1", stem + "2"}
	}
	return oneOf(w.r, idPairs[:])
}

// numbers draws two numbers.
func (w *wild) numbers() [2]string {
	if w == nil || !w.amounts || w.r.IntN(2) == 0 {
		return [2]string{"1", "2"}
	}
	pair := oneOf(w.r, numberPairs[:])
	for i, text := range pair {
		if d, err := decimal.Parse(text); err == nil {
			pair[i] = d.String() // as a text that holds it has it
		}
	}
	return pair
}

// many draws how many elements a long list has; 0 if there is none.
func (w *wild) many() int {
	if w == nil || !w.crowded {
		return 0
	}
	return oneOf(w.r, []int{20, 60, 110, 200, 201, 201})
}

// longer draws ids that are about as long as room says; none if there is no room for any.
func (w *wild) longer(room []int) []string {
	if w == nil || len(room) == 0 {
		return nil
	}
	var texts []string
	if w.full {
		for _, length := range slices.Compact(slices.Sorted(slices.Values(room))) {
			texts = append(texts, strings.Repeat("z", max(1, length)))
		}
	}
	if !w.long {
		return texts
	}
	letter := oneOf(w.r, []string{"x", "x", "é", "\U0001f600", "/", "%"})
	for _, end := range []string{"1", "2"} {
		length := max(1, oneOf(w.r, room)+oneOf(w.r, []int{-40, -2, -1, 0, 0, 0, 1, 2, 90}))
		text := strings.Repeat(letter, (length-1)/len(letter))
		texts = append(texts, text+strings.Repeat("y", length-1-len(text))+end)
	}
	return texts
}

// values draws some of every type.
func (w *wild) values() []change.Value {
	if w == nil || !w.shapes {
		return nil
	}
	text, number := change.String, change.Number
	all := []change.Value{
		change.Set(change.KindStringSet, []string{"a", "\u00e9", "e\u0301"}), change.Set(change.KindStringSet, []string{""}),
		change.Set(change.KindNumberSet, []string{"1", "2.5", "1e-125"}), change.Set(change.KindBinarySet, []string{"\x00", "\xff"}),
		change.Binary([]byte{}), change.Binary([]byte{0, 0xff, '#'}), change.Null(), text(""), text("\x00 \u00e9 \U0001f600 # / % ! @ ~"),
		change.List(nil), change.Map(map[string]change.Value{}),
		change.Map(map[string]change.Value{"": number("1e125"), "a.b": change.List([]change.Value{change.Null(),
			change.Map(map[string]change.Value{"#": text("é")})})}),
		change.List([]change.Value{change.Bool(false), change.Set(change.KindNumberSet, []string{"-1"}), change.Binary([]byte{})}),
		number("1e125"), number("-1e-125"),
	}
	var some []change.Value
	for range 5 {
		some = append(some, oneOf(w.r, all))
	}
	return some
}

// rooms lists, for every variable, how many bytes are left for it in the keys
// that hold it, if each other variable has two.
func (p *Population) rooms(templates [][][]part) map[string][]int {
	rooms := map[string][]int{}
	for _, entity := range templates {
		for i, key := range entity {
			if p.keyKind(i) != change.KindString {
				continue
			}
			left := keyBytesMax[i]
			for _, part := range key {
				if left -= len(part.literal); part.variable != "" {
					left -= 2
				}
			}
			for _, part := range key {
				if part.variable != "" {
					rooms[part.variable] = append(rooms[part.variable], left+2)
				}
			}
		}
	}
	for _, room := range rooms {
		slices.Sort(room)
	}
	return rooms
}
