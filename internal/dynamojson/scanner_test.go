package dynamojson

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// accepts reports whether src is one JSON value, as the scanner sees it.
func accepts(src string) bool {
	s := &Scanner{Src: []byte(src)}
	return s.Skip(0) && s.AtEnd()
}

func TestTheScannerAgreesWithEncodingJSON(t *testing.T) {
	for _, src := range []string{
		`"a"`, `""`, `"`, `"a`, `"\`, `"\"`, `"\\"`, `"\x"`, `"\b\f\n\r\t\"\\\/"`, `"\u00e9"`, `"\u00E9"`, `"\u00g0"`, `"\u00`, `"\ud83d"`,
		`"\ud83d\ude00"`, `"\ud83d\u0041"`, `"\ud83d\u00`, `"\ud83dx"`, "\"\x1f\"", "\"\n\"", "\"\x7f\"", "\"\x00\"", `"12345678\"0"`,
		`"1234567` + "\x01" + `"`,
		"0", "-0", "01", "-", "-01", "1.", ".5", "1.5", "1e", "1e5", "1E+5", "1e-", "1.e5", "-1.5e-3", "1.5.5", "--1", "1-1", "+1", "00", "1e5.5",
		"-.5", "0.0", "1x",
		"true", "tru", "truex", "false", "null", "nul", "nulll", "True", "",
		"[]", "[1]", "[1,]", "[,1]", "[1 2]", "[", "[1", "[1,", "]", "{}", `{"a":1}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`,
		`{"a":1,"b":[{}]}`, "{", `{"a"`, `{"a":1`,
		" [ 1 , { } ] ", "\t1\r\n", "\v1", "\u00a01", "1 1", "\xef\xbb\xbf1", "[1]\x00",
	} {
		if got, want := accepts(src), json.Valid([]byte(src)); got != want {
			t.Errorf("%q: taken for JSON %v, want %v", src, got, want)
		}
	}
}

func TestNearlyJSONIsJudgedAsByEncodingJSON(t *testing.T) {
	pieces := []string{`{`, `}`, `[`, `]`, `,`, `:`, `"`, `\`, `"a"`, `"b\n"`, `\u00e9`, `\ud83d`, `1`, `0`, `-`, `.`, `e`, `true`, `null`,
		` `, "\n", "\x01", "é"}
	rapid.Check(t, func(t *rapid.T) {
		src := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "src"), "")
		if got, want := accepts(src), json.Valid([]byte(src)); got != want {
			t.Fatalf("%q: taken for JSON %v, want %v", src, got, want)
		}
	})
}

// The scanner looks at eight bytes at once: whatever is special must be seen in
// each of the eight places, beside each neighbour.
func TestStringsAreReadAsByEncodingJSON(t *testing.T) {
	pieces := []string{"a", "b", "\x7f", "!", "#", "]", "[", "é", "€", "😀", `\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0041`,
		`\uD83D\uDE00`, `\ud83d`, `\ude00`, `\ufffd`}
	rapid.Check(t, func(t *rapid.T) {
		src := `"` + strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 24).Draw(t, "src"), "") + `"`
		var want string
		if err := json.Unmarshal([]byte(src), &want); err != nil {
			t.Fatal(err)
		}
		s := &Scanner{Src: []byte(src + rapid.SampledFrom([]string{"", ":", `,"next":"x"`}).Draw(t, "rest"))}
		got, ok := s.Text()
		if !ok || s.Pos != len(src) || string(s.Bytes(got)) != want {
			t.Fatalf("%s is read as %q up to %d (%v), want %q", src, s.Bytes(got), s.Pos, ok, want)
		}
	})
}

func TestNumbersOfDynamoDB(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "-1": true, "1.5": true, "1.": true, ".5": true, "1E+40": true, "1e-5": true, "007": true, strings.Repeat("9", 38): true,
		"": false, "-": false, ".": false, "e5": false, "1e": false, "1e+": false, "1x": false, "NaN": false, "Infinity": false, "0x10": false,
		" 1": false, "1 ": false, "+1": false, "1.5.5": false, "1,5": false, "١": false,
	} {
		if got := numeric([]byte(text)); got != want {
			t.Errorf("%q: a number %v, want %v", text, got, want)
		}
	}
}
