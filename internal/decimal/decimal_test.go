package decimal

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func parse(t interface{ Fatalf(string, ...any) }, text string) Decimal {
	d, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return d
}

var (
	nines = strings.Repeat("9", DigitsMax)
	zeros = strings.Repeat("0", 125)
)

func TestParseReadsEveryNumberThatDynamoDBStores(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.00": "0", "0e5": "0", "1": "1", "+1": "1", "007": "7", "-12.50": "-12.5", "1e3": "1000", "1E-3": "0.001",
		".5": "0.5", "5.": "5",
		nines: nines, "-" + nines: "-" + nines, nines + "000": nines + "000", "0." + nines: "0." + nines,
		"1e125": "1" + zeros, "1e-130": "0." + strings.Repeat("0", 129) + "1", strings.Repeat("0", 100) + "1": "1",
		"0e999": "0",
	} {
		if got := parse(t, text).String(); got != want {
			t.Errorf("Parse(%q) is %s, want %s", text, got, want)
		}
	}
}

func TestParseRefusesWhatDynamoDBCannotStore(t *testing.T) {
	for _, text := range []string{nines + "9", "1." + nines, "1e126", "-1e126", "1e-131", nines + "e100", "1e99999"} {
		if d, err := Parse(text); !errors.Is(err, ErrInexact) {
			t.Errorf("Parse(%q) is %s, %v; want ErrInexact", text, d, err)
		}
	}
	for _, text := range []string{"", " ", "a", "1a", "1,5", "1 2", "--1", "NaN", "sNaN", "Infinity", "-inf", "0x10", "1_000", "1e",
		"1e99999999999999999999", "١", strings.Repeat("1", 300)} {
		if d, err := Parse(text); err == nil || errors.Is(err, ErrInexact) {
			t.Errorf("Parse(%q) is %s, %v; want an error of its own", text, d, err)
		}
	}
}

func TestArithmeticIsExactOrAnError(t *testing.T) {
	const inexact = "inexact"
	operations := map[string]func(a, b Decimal) (Decimal, error){"+": Decimal.Add, "-": Decimal.Sub, "*": Decimal.Mul, "/": Decimal.Quo}
	for _, row := range []struct{ a, op, b, want string }{
		{"0.1", "+", "0.2", "0.3"},
		{"1", "+", "-1", "0"},
		{nines, "+", "1", "1" + strings.Repeat("0", DigitsMax)},
		{nines, "+", "2", inexact},
		{"1e125", "+", "1", inexact},
		{"1e125", "+", "-1e125", "0"},
		{"1e37", "+", "1", "1" + strings.Repeat("0", 36) + "1"},
		{"1e38", "+", "1", inexact},
		{"9e125", "+", "1e125", inexact},
		{"0.3", "-", "0.1", "0.2"},
		{"1", "-", "1", "0"},
		{"-" + nines, "-", "2", inexact},
		{"1.5", "*", "-2", "-3"},
		{"0", "*", "1e125", "0"},
		{"1e100", "*", "1e25", "1" + zeros},
		{"1e100", "*", "1e26", inexact},
		{"1e-100", "*", "1e-31", inexact},
		{nines, "*", nines, inexact},
		{nines, "*", "1", nines},
		{"1", "/", "8", "0.125"},
		{"6", "/", "3", "2"},
		{"-1", "/", "4", "-0.25"},
		{"0", "/", "7", "0"},
		{"1", "/", "3", inexact},
		{"2", "/", "3", inexact},
		{"1e125", "/", "1e125", "1"},
		{"1e125", "/", "0.1", inexact},
		{"1e-130", "/", "10", inexact},
		{nines, "/", nines, "1"},
		{nines, "/", "3", strings.Repeat("3", DigitsMax)},
		{"1", "/", nines, inexact},
		{"1", "/", "1e-130", inexact},
		{"1", "/", "1e-125", "1" + zeros},
		{"1", "/", "1" + strings.Repeat("0", 37), "0." + strings.Repeat("0", 36) + "1"},
	} {
		d, err := operations[row.op](parse(t, row.a), parse(t, row.b))
		got := d.String()
		if errors.Is(err, ErrInexact) {
			got = inexact
		} else if err != nil {
			t.Errorf("%s %s %s: %v", row.a, row.op, row.b, err)
		}
		if got != row.want {
			t.Errorf("%s %s %s is %s, want %s", row.a, row.op, row.b, got, row.want)
		}
	}
}

func TestDivisionByZeroIsItsOwnError(t *testing.T) {
	for _, a := range []string{"0", "1", "-1e125"} {
		if d, err := parse(t, a).Quo(Decimal{}); !errors.Is(err, ErrDivisionByZero) {
			t.Errorf("%s / 0 is %s, %v", a, d, err)
		}
	}
}

func TestTheZeroDecimalIsZero(t *testing.T) {
	var z Decimal
	if !z.IsZero() || z.String() != "0" || z.Cmp(New(0)) != 0 || !z.Neg().IsZero() || z.Neg().String() != "0" {
		t.Errorf("the zero Decimal is %s", z)
	}
	if d := New(5); d.IsZero() || d.String() != "5" {
		t.Errorf("New(5) is %s", d)
	}
}

func TestIntegersAreToldFromFractions(t *testing.T) {
	for text, want := range map[string]bool{"0": true, "1": true, "-10": true, "1e125": true, "2.0": true, "1.5": false, "1e-1": false,
		"-0.25": false} {
		if got := parse(t, text).IsInteger(); got != want {
			t.Errorf("%s is an integer: %t", text, got)
		}
	}
	for text, want := range map[string]int64{"0": 0, "-5": -5, "1e18": 1e18, "100": 100, "9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64} {
		if got, ok := parse(t, text).Int64(); !ok || got != want {
			t.Errorf("%s as int64 is %d, %t", text, got, ok)
		}
	}
	for _, text := range []string{"9223372036854775808", "-9223372036854775809", "1e125", "1.5", nines} {
		if got, ok := parse(t, text).Int64(); ok {
			t.Errorf("%s as int64 is %d", text, got)
		}
	}
}

// anyDecimal draws numbers of all lengths and magnitudes.
func anyDecimal() *rapid.Generator[Decimal] {
	return rapid.Custom(func(t *rapid.T) Decimal {
		digits := rapid.OneOf(rapid.StringMatching(`-?[0-9]{1,38}`), rapid.StringMatching(`-?[0-9]{1,4}`)).Draw(t, "digits")
		exponent := rapid.OneOf(rapid.IntRange(-3, 3), rapid.IntRange(-92, 87)).Draw(t, "exponent")
		return parse(t, digits+"e"+New(int64(exponent)).String())
	})
}

func rational(t *rapid.T, d Decimal) *big.Rat {
	r, ok := new(big.Rat).SetString(d.String())
	if !ok {
		t.Fatalf("%s is not a number", d)
	}
	return r
}

// fits reports, by another route, whether DynamoDB can store a rational number.
func fits(r *big.Rat) bool {
	if r.Sign() == 0 {
		return true
	}
	ten := big.NewInt(10)
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(ten, big.NewInt(400), nil)))
	if !scaled.IsInt() {
		return false // more than 400 digits behind the point
	}
	digits := new(big.Int).Abs(scaled.Num()).String()
	magnitude := len(digits) - 1 - 400
	return len(strings.TrimRight(digits, "0")) <= DigitsMax && magnitude >= exponentMin && magnitude <= exponentMax
}

func TestArithmeticAgreesWithRationalNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyDecimal().Draw(t, "a"), anyDecimal().Draw(t, "b")
		textA, textB := a.String(), b.String()
		x, y := rational(t, a), rational(t, b)
		check := func(op string, got Decimal, err error, want *big.Rat) {
			switch {
			case err != nil && !errors.Is(err, ErrInexact):
				t.Errorf("%s %s %s: %v", a, op, b, err)
			case (err == nil) != fits(want):
				t.Errorf("%s %s %s: %v, but it is %s", a, op, b, err, want)
			case err == nil && rational(t, got).Cmp(want) != 0:
				t.Errorf("%s %s %s is %s, want %s", a, op, b, got, want)
			}
		}
		sum, err := a.Add(b)
		check("+", sum, err, new(big.Rat).Add(x, y))
		difference, err := a.Sub(b)
		check("-", difference, err, new(big.Rat).Sub(x, y))
		product, err := a.Mul(b)
		check("*", product, err, new(big.Rat).Mul(x, y))
		if !b.IsZero() {
			quotient, err := a.Quo(b)
			check("/", quotient, err, new(big.Rat).Quo(x, y))
		}
		if a.Cmp(b) != x.Cmp(y) {
			t.Errorf("%s compared with %s is %d", a, b, a.Cmp(b))
		}
		if rational(t, a.Neg()).Cmp(new(big.Rat).Neg(x)) != 0 {
			t.Errorf("-%s is %s", a, a.Neg())
		}
		if a.String() != textA || b.String() != textB {
			t.Errorf("%s and %s became %s and %s", textA, textB, a, b)
		}
	})
}

func TestStringsParseBackToTheSameText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDecimal().Draw(t, "d")
		text := d.String()
		if strings.ContainsAny(text, "eE+") || text == "-0" || strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
			t.Errorf("%s is not DynamoDB's form", text)
		}
		if again := parse(t, text); again.Cmp(d) != 0 || again.String() != text {
			t.Errorf("%s is read back as %s", text, again)
		}
	})
}

func TestADivisionThatComesOutEvenIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyDecimal().Draw(t, "a"), anyDecimal().Draw(t, "b")
		product, err := a.Mul(b)
		if err != nil || b.IsZero() {
			return
		}
		if back, err := product.Quo(b); err != nil || back.Cmp(a) != 0 {
			t.Errorf("%s * %s / %s is %s, %v", a, b, b, back, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"0", "-1.5e3", nines, "1e125", "1e-130", "NaN", "1e2147483647", "1e-2147483648", "0e2147483647",
		"1e9223372036854775807", ".", "+", "e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(d.String()); err != nil || again.Cmp(d) != 0 {
			t.Errorf("Parse(%q) is %s, read back as %s, %v", text, d, again, err)
		}
	})
}

func TestSumNeedsNoRoomOnTheWay(t *testing.T) {
	var all []Decimal
	for _, text := range []string{"0.10000000000000000000000000000000000001", "1.1", "-0.10000000000000000000000000000000000001"} {
		d, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	if got, err := Sum(all...); err != nil || got.String() != "1.1" {
		t.Errorf("the sum is %v, %v, want 1.1", got, err)
	}
	if _, err := Sum(all[0], all[1]); !errors.Is(err, ErrInexact) {
		t.Errorf("a sum of 39 digits: %v", err)
	}
	if got, err := Sum(); err != nil || !got.IsZero() {
		t.Errorf("the sum of nothing is %v, %v", got, err)
	}
}

func TestQuoRoundedTakesTheNearestNumber(t *testing.T) {
	thirds, sixes := strings.Repeat("3", DigitsMax), strings.Repeat("6", DigitsMax-1)+"7"
	smallest := "0." + strings.Repeat("0", 129) + "1"
	for _, row := range []struct{ a, b, want string }{
		{"10", "2", "5"},
		{"0", "3", "0"},
		{"1", "3", "0." + thirds},
		{"2", "3", "0." + sixes},
		{"-2", "3", "-0." + sixes},
		{"200", "3", "66." + sixes[2:]},
		{"0.3", "2", "0.15"},
		{strings.Repeat("1", 37) + "2", "1", strings.Repeat("1", 37) + "2"},
		{"1" + strings.Repeat("0", 36) + "1", "2", "5" + strings.Repeat("0", 35) + "0.5"},
		// 39 digits, the last one a 5: the even neighbour, below or above.
		{"2" + strings.Repeat("0", 36) + "1", "2", "1" + strings.Repeat("0", 37)},
		{"2" + strings.Repeat("0", 36) + "1", "20", "1" + strings.Repeat("0", 36)},
		{"1" + strings.Repeat("0", 36) + "1", "8", "125" + strings.Repeat("0", 34) + ".1"},
		{"12345678901234567890123456789012345675", "10", "1234567890123456789012345678901234567.5"},
		{"24691357802469135780246913578024691357", "8", "3086419725308641972530864197253086419.6"}, // ...9.625
		{"24691357802469135780246913578024691358", "8", "3086419725308641972530864197253086419.8"}, // ...9.75
		{"24691357802469135780246913578024691362", "8", "3086419725308641972530864197253086420.2"}, // ...0.25
		{"1e-130", "2", "0"},
		{"1e-130", "1.9", smallest},
		{"-1e-130", "1.9", "-" + smallest},
		{"3e-130", "2", "0." + strings.Repeat("0", 129) + "15"},
		{"1e-130", "3", "0"},
	} {
		got, err := parse(t, row.a).QuoRounded(parse(t, row.b))
		if err != nil || got.String() != row.want {
			t.Errorf("%s / %s is %s, %v; want %s", row.a, row.b, got, err, row.want)
		}
	}
	if got, err := New(1).QuoRounded(New(0)); !errors.Is(err, ErrDivisionByZero) {
		t.Errorf("1 / 0 is %s, %v", got, err)
	}
	if got, err := parse(t, "1e125").QuoRounded(parse(t, "0.1")); !errors.Is(err, ErrInexact) {
		t.Errorf("1e125 / 0.1 is %s, %v", got, err)
	}
}

// nearest rounds a quotient by whole numbers alone; false if it is too great.
func nearest(q *big.Rat) (*big.Rat, bool) {
	if q.Sign() == 0 {
		return new(big.Rat), true
	}
	power := func(e int) *big.Rat {
		ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(e, -e))), nil)
		if e < 0 {
			return new(big.Rat).SetFrac(big.NewInt(1), ten)
		}
		return new(big.Rat).SetInt(ten)
	}
	size := new(big.Rat).Abs(q)
	magnitude := exponentMin - 1
	for size.Cmp(power(magnitude+1)) >= 0 {
		magnitude++
	}
	unit := power(exponentMin)
	if magnitude >= exponentMin {
		unit = power(magnitude - DigitsMax + 1)
	}
	units := new(big.Rat).Quo(size, unit)
	whole, rest := new(big.Int).QuoRem(units.Num(), units.Denom(), new(big.Int))
	if c := rest.Lsh(rest, 1).Cmp(units.Denom()); c > 0 || c == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(1))
	}
	rounded := new(big.Rat).Mul(new(big.Rat).SetInt(whole), unit)
	if q.Sign() < 0 {
		rounded.Neg(rounded)
	}
	return rounded, new(big.Rat).Abs(rounded).Cmp(power(exponentMax+1)) < 0
}

// FuzzQuoRounded compares rounded quotients with those of whole numbers.
func FuzzQuoRounded(f *testing.F) {
	for _, text := range []string{"0", "1", "3", "-7", "0.1", nines, "-" + nines, "1e125", "-1e-130", "2.5", "15e-131", nines + "e88", "6"} {
		f.Add(text, "3")
		f.Add(text, "-8")
		f.Add("1", text)
		f.Add(nines, text)
		f.Add("1e-130", text)
	}
	f.Fuzz(func(t *testing.T, x, y string) {
		a, err := Parse(x)
		b, err2 := Parse(y)
		if err != nil || err2 != nil || b.IsZero() {
			return
		}
		got, err := a.QuoRounded(b)
		p, _ := new(big.Rat).SetString(a.String())
		q, _ := new(big.Rat).SetString(b.String())
		want, ok := nearest(p.Quo(p, q))
		if !ok {
			if !errors.Is(err, ErrInexact) {
				t.Errorf("%s / %s is %s, %v; want ErrInexact", a, b, got, err)
			}
			return
		}
		if is, _ := new(big.Rat).SetString(got.String()); err != nil || is.Cmp(want) != 0 {
			t.Errorf("%s / %s is %s, %v; want %s", a, b, got, err, want.FloatString(200))
		}
		if back, err := Parse(got.String()); err != nil || back.Cmp(got) != 0 {
			t.Errorf("%s does not parse back: %v", got, err)
		}
	})
}
