package handlers

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dynamill/dynamill/change"
)

// encoder writes values as Lambda may: any white space, any escapes.
type encoder struct{ *rapid.T }

func (e encoder) space() string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n  "}).Draw(e.T, "space")
}

// text writes a JSON string; which characters are escaped is up to chance.
func (e encoder) text(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	ways := rapid.IntRange(0, 3).Draw(e.T, "escapes")
	for i, r := range s {
		switch {
		case ways == 3 || ways == 2 && i%2 == 0:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		case ways == 1 && r == '/':
			b.WriteString(`\/`)
		default:
			plain, _ := json.Marshal(string(r))
			b.Write(plain[1 : len(plain)-1])
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (e encoder) list(members []string) string {
	return "[" + e.space() + strings.Join(members, e.space()+","+e.space()) + e.space() + "]"
}

func (e encoder) object(fields map[string]string) string {
	var members []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		members = append(members, e.text(name)+e.space()+":"+e.space()+fields[name])
	}
	members = rapid.Permutation(members).Draw(e.T, "order")
	return "{" + e.space() + strings.Join(members, e.space()+","+e.space()) + e.space() + "}"
}

func (e encoder) fields(m map[string]change.Value) string {
	fields := map[string]string{}
	for name, v := range m {
		fields[name] = e.value(v)
	}
	return e.object(fields)
}

func (e encoder) scalar(v change.Value) string {
	if v.Kind() == change.KindBinary {
		return e.text(base64.StdEncoding.EncodeToString([]byte(v.Text())))
	}
	return e.text(v.Text())
}

func (e encoder) value(v change.Value) string {
	var content string
	switch v.Kind() {
	case change.KindBool:
		content = fmt.Sprint(v.Bool())
	case change.KindNull:
		content = "true"
	case change.KindMap:
		content = e.fields(v.Map())
	case change.KindList, change.KindStringSet, change.KindNumberSet, change.KindBinarySet:
		var members []string
		for _, m := range v.List() {
			if v.Kind() == change.KindList {
				members = append(members, e.value(m))
			} else {
				members = append(members, e.scalar(m))
			}
		}
		content = e.list(members)
	default:
		content = e.scalar(v)
	}
	return e.object(map[string]string{v.Kind().String(): content})
}

var (
	anyText   = rapid.StringOf(rapid.RuneFrom([]rune("ab\"\\/\n\x00é€😀\ufffd漢")))
	anyNumber = rapid.StringMatching(`-?[0-9]{1,38}(\.[0-9]{1,5})?([eE][-+]?[0-9]{1,2})?`)
	anyBytes  = rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 9), func(b []byte) string { return string(b) })
)

func drawValue(t *rapid.T, depth int) change.Value {
	kinds := []change.Kind{
		change.KindString, change.KindNumber, change.KindBinary, change.KindBool, change.KindNull,
		change.KindStringSet, change.KindNumberSet, change.KindBinarySet,
	}
	if depth > 0 {
		kinds = append(kinds, change.KindList, change.KindMap)
	}
	members := func(g *rapid.Generator[string]) []string {
		return rapid.SliceOfNDistinct(g, 0, 3, rapid.ID).Draw(t, "members")
	}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case change.KindString:
		return change.String(anyText.Draw(t, "S"))
	case change.KindNumber:
		return change.Number(anyNumber.Draw(t, "N"))
	case change.KindBinary:
		return change.Binary([]byte(anyBytes.Draw(t, "B")))
	case change.KindBool:
		return change.Bool(rapid.Bool().Draw(t, "BOOL"))
	case change.KindNull:
		return change.Null()
	case change.KindStringSet:
		return change.Set(kind, members(anyText))
	case change.KindNumberSet:
		return change.Set(kind, members(anyNumber))
	case change.KindBinarySet:
		return change.Set(kind, members(anyBytes))
	case change.KindList:
		vs := []change.Value{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			vs = append(vs, drawValue(t, depth-1))
		}
		return change.List(vs)
	}
	return change.Map(drawFields(t, depth-1))
}

func drawFields(t *rapid.T, depth int) map[string]change.Value {
	m := map[string]change.Value{}
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		m[anyText.Draw(t, "name")] = drawValue(t, depth)
	}
	return m
}

// source is a record before it is written as JSON.
type source struct {
	key      change.Key
	keyItem  change.Item
	old, new change.Item
	sequence string
}

func drawSource(t *rapid.T) source {
	s := source{sequence: rapid.StringMatching(`[1-9][0-9]{0,39}`).Draw(t, "sequence number")}
	s.key.Partition = anyText.Filter(func(s string) bool { return s != "" }).Draw(t, "partition")
	s.key.Sort = anyNumber.Draw(t, "sort")
	s.keyItem = change.Item{"pk": change.String(s.key.Partition), "sk": change.Number(s.key.Sort)}
	item := func() change.Item {
		it := change.Item(drawFields(t, 3))
		maps.Copy(it, s.keyItem)
		return it
	}
	event := rapid.IntRange(0, 2).Draw(t, "event")
	if event > 0 {
		s.old = item()
	}
	if event < 2 {
		s.new = item()
	}
	return s
}

func (s source) json(e encoder) string {
	body := map[string]string{"Keys": e.fields(s.keyItem), "SequenceNumber": `"` + s.sequence + `"`, "SizeBytes": "12"}
	name := `"INSERT"`
	if s.old != nil {
		body["OldImage"] = e.fields(s.old)
		name = `"MODIFY"`
	}
	if s.new != nil {
		body["NewImage"] = e.fields(s.new)
	} else {
		name = `"REMOVE"`
	}
	// Names of fields are always plain.
	var members []string
	for _, field := range slices.Sorted(maps.Keys(body)) {
		members = append(members, `"`+field+`"`+e.space()+":"+e.space()+body[field])
	}
	members = rapid.Permutation(members).Draw(e.T, "order")
	return `{"eventName":` + name + `,"dynamodb":{` + strings.Join(members, ",") + `},"eventSourceARN":"` + streamARN + `"}`
}

func TestDecodedRecordsEqualTheirSources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := rapid.SliceOfNDistinct(rapid.Custom(drawSource), 1, 5, func(s source) string { return s.sequence }).Draw(t, "records")
		slices.SortFunc(sources, func(a, b source) int {
			return cmp.Or(len(a.sequence)-len(b.sequence), strings.Compare(a.sequence, b.sequence))
		})
		var texts []string
		for _, s := range sources {
			texts = append(texts, s.json(encoder{t}))
		}
		payload := event(texts...)
		if !json.Valid([]byte(payload)) {
			t.Fatalf("the test wrote what is no JSON: %s", payload)
		}
		b, err := readBatch([]byte(payload), &anyTable)
		if err != nil {
			t.Fatal(err)
		}
		records := recordsOf(b)
		if len(records) != len(sources) {
			t.Fatalf("%d of %d records; first fault %v", len(records), len(sources), b.elements[0].fault)
		}
		for i, s := range sources {
			r := records[i]
			if r.Key != s.key || r.Position.SequenceNumber() != s.sequence {
				t.Fatalf("key %q, position %v, want %q, %s", r.Key, r.Position, s.key, s.sequence)
			}
			compareImage(t, r.Old, s.old)
			compareImage(t, r.New, s.new)
		}
	})
}

// recordsOf are the good records of a batch, in the order in which they are applied.
func recordsOf(b *batch) (records []change.Record) {
	for _, i := range b.good {
		records = append(records, b.elements[i].record)
	}
	return records
}

// fatalf is what *testing.T and *rapid.T have in common here.
type fatalf interface {
	Helper()
	Fatalf(format string, args ...any)
}

func compareImage(t fatalf, got change.Image, want change.Item) {
	t.Helper()
	if got == nil || want == nil {
		if (got == nil) != (want == nil) {
			t.Fatalf("image %v, want %v", got, want)
		}
		return
	}
	for name, v := range want {
		if diff := gocmp.Diff(v, got.Lookup(name)); diff != "" {
			t.Fatalf("attribute %q (-want +got):\n%s", name, diff)
		}
	}
	if len(checkImage(t, got)) != len(want) {
		t.Fatalf("the image has other attributes than %v", want)
	}
}

// checkImage holds Lookup and All against each other.
func checkImage(t fatalf, im change.Image) change.Item {
	t.Helper()
	all := change.Item{}
	for name, v := range im.All() {
		if _, twice := all[name]; twice {
			t.Fatalf("All gives %q twice", name)
		}
		all[name] = v
		if !im.Lookup(name).Equal(v) {
			t.Fatalf("attribute %q is %v by Lookup and %v by All", name, im.Lookup(name), v)
		}
	}
	return all
}

func TestOfTwoAttributesOfOneNameTheFirstCounts(t *testing.T) {
	record := strings.Replace(insert("a", "1"), `"name":`,
		`"na\u006de":{"S":"first"},"name":{"S":"second"},"m":{"M":{"x":{"S":"first"},"x":{"N":"2"}}},"name":`, 1)
	b, err := readBatch([]byte(event(record)), &anyTable)
	if err != nil {
		t.Fatal(err)
	}
	im := recordsOf(b)[0].New
	if all := checkImage(t, im); len(all) != 4 || all["name"].Text() != "first" || all["m"].Map()["x"].Text() != "first" {
		t.Errorf("the image is %v", all)
	}
}

func TestAnImageIsReadByManyAtOnce(t *testing.T) {
	b, err := readBatch(benchPayload(1), &anyTable)
	if err != nil {
		t.Fatal(err)
	}
	im := recordsOf(b)[0].New
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for range 100 {
				if checkImage(t, im)["price"].Text() != "12345.6789" {
					t.Error("wrong price")
				}
			}
		})
	}
	readers.Wait()
}

func TestAnAttributeIsDecodedOnce(t *testing.T) {
	b, err := readBatch(benchPayload(1), &anyTable)
	if err != nil {
		t.Fatal(err)
	}
	im := recordsOf(b)[0].New
	im.Lookup("address")
	if n := testing.AllocsPerRun(100, func() { im.Lookup("address"); im.Lookup("nothing") }); n != 0 {
		t.Errorf("%v allocations to look an attribute up again", n)
	}
}

// Images of one batch share their memory: more of them than a page holds, and
// one larger than a page.
func TestManyAndLargeImagesKeepTheirAttributes(t *testing.T) {
	var wide strings.Builder
	for i := range 3 * arenaAttributes {
		fmt.Fprintf(&wide, `,"x%d":{"N":"%d"}`, i, i)
	}
	var records []string
	for i := range 2 * arenaImages {
		record := insert(fmt.Sprint("u", i), fmt.Sprint(i+1))
		if i%100 == 99 {
			record = strings.Replace(record, `}},
  "SequenceNumber"`, "}"+wide.String()+`},"SequenceNumber"`, 1)
		}
		records = append(records, record)
	}
	b, err := readBatch([]byte(event(records...)), &anyTable)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range recordsOf(b) {
		want := 3
		if i%100 == 99 {
			want += 3 * arenaAttributes
			if got := r.New.Lookup("x12287").Text(); got != "12287" {
				t.Errorf("record %d: x12287 is %q", i, got)
			}
		}
		if got := checkedLength(r.New); got != want || r.New.Lookup("name").Text() != fmt.Sprintf("u%d at %d", i, i+1) {
			t.Errorf("record %d has %d attributes, want %d; name %q", i, got, want, r.New.Lookup("name").Text())
		}
	}
}

func checkedLength(im change.Image) (n int) {
	for range im.All() {
		n++
	}
	return n
}

// anyTable is what decoding needs of a Config.
var anyTable = Config{PartitionKey: "pk", SortKey: "sk"}
