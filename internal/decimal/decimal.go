// Package decimal is arithmetic on DynamoDB numbers: exact up to 38 digits, an error beyond. It wraps apd.
package decimal

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/apd/v3"
)

// DigitsMax is the precision of a DynamoDB number; its magnitude ends below
// 1E+126 and above 1E-130 (DynamoDB developer guide, "Data types: Number").
const (
	DigitsMax   = 38
	exponentMax = 125
	exponentMin = -130
)

// ErrInexact is returned where a result needs more than DigitsMax digits or a greater magnitude than DynamoDB stores.
var ErrInexact = errors.New("the result does not fit into a DynamoDB number (38 digits)")

// ErrDivisionByZero is returned by Quo.
var ErrDivisionByZero = errors.New("division by zero")

// Decimal is an immutable number that DynamoDB can store. The zero Decimal is 0.
type Decimal struct{ d apd.Decimal }

// exact has room for any sum or product of two DynamoDB numbers.
var exact = apd.Context{Precision: 600, MaxExponent: 2000, MinExponent: -2000, Traps: apd.DefaultTraps}

// quotient rounds half to even: Quo finds out whether anything was lost.
var quotient = apd.Context{Precision: DigitsMax, MaxExponent: 2000, MinExponent: -2000, Traps: apd.DefaultTraps,
	Rounding: apd.RoundHalfEven}

// New makes a Decimal from an integer.
func New(n int64) Decimal {
	var r Decimal
	r.d.SetInt64(n)
	return r
}

// Parse reads a decimal number, with or without an exponent; ErrInexact if DynamoDB cannot store it.
func Parse(text string) (Decimal, error) {
	if len(text) > 256 {
		return Decimal{}, fmt.Errorf("%.20q...: too long for a number", text)
	}
	var r Decimal
	if _, _, err := r.d.SetString(text); err != nil || r.d.Form != apd.Finite {
		return Decimal{}, fmt.Errorf("%q is not a number", text)
	}
	return fit(r)
}

// fit normalizes and refuses what DynamoDB cannot store.
func fit(r Decimal) (Decimal, error) {
	r.d.Reduce(&r.d)
	if r.d.IsZero() {
		return Decimal{}, nil
	}
	if r.d.NumDigits() > DigitsMax || r.magnitude() > exponentMax || r.magnitude() < exponentMin {
		return Decimal{}, ErrInexact
	}
	return r, nil
}

// Add returns a+b, or ErrInexact.
func (a Decimal) Add(b Decimal) (Decimal, error) { return a.apply(exact.Add, b) }

// Sum adds up decimals; ErrInexact if the result does not fit. The sums on the way need not fit.
func Sum(all ...Decimal) (Decimal, error) {
	var r Decimal
	for i := range all {
		if _, err := exact.Add(&r.d, &r.d, &all[i].d); err != nil {
			return Decimal{}, ErrInexact
		}
	}
	return fit(r)
}

// Sub returns a-b, or ErrInexact.
func (a Decimal) Sub(b Decimal) (Decimal, error) { return a.apply(exact.Sub, b) }

// Mul returns a*b, or ErrInexact.
func (a Decimal) Mul(b Decimal) (Decimal, error) { return a.apply(exact.Mul, b) }

// Quo returns a/b if that is exact within 38 digits, otherwise ErrInexact; ErrDivisionByZero if b is 0.
func (a Decimal) Quo(b Decimal) (Decimal, error) {
	if b.IsZero() {
		return Decimal{}, ErrDivisionByZero
	}
	q, err := a.apply(quotient.Quo, b)
	if err != nil {
		return Decimal{}, err
	}
	// The quotient was rounded to 38 digits: it is the answer only if it leads back.
	if back, err := q.Mul(b); err != nil || back.Cmp(a) != 0 {
		return Decimal{}, ErrInexact
	}
	return q, nil
}

// QuoRounded returns a/b rounded to the nearest number that DynamoDB stores, a tie to the one
// whose last digit is even; ErrDivisionByZero if b is 0, ErrInexact if no number is as great.
func (a Decimal) QuoRounded(b Decimal) (Decimal, error) {
	if b.IsZero() {
		return Decimal{}, ErrDivisionByZero
	}
	q, err := a.apply(quotient.Quo, b)
	if err == nil || a.magnitude()-b.magnitude() > 0 {
		return q, err
	}
	// No number but 0 is so near to 0: the quotient becomes that or the smallest one.
	var twice, smallest, least apd.Decimal
	smallest.SetFinite(1, exponentMin)
	_, err = exact.Mul(&least, &b.d, &smallest)
	_, err2 := exact.Add(&twice, &a.d, &a.d)
	if err != nil || err2 != nil {
		return Decimal{}, ErrInexact
	}
	if twice.Abs(&twice).Cmp(least.Abs(&least)) <= 0 {
		return Decimal{}, nil
	}
	smallest.Negative = a.d.Negative != b.d.Negative
	return Decimal{smallest}, nil
}

// magnitude is the power of ten of the highest digit.
func (a Decimal) magnitude() int64 { return int64(a.d.Exponent) + a.d.NumDigits() - 1 }

func (a Decimal) apply(op func(d, x, y *apd.Decimal) (apd.Condition, error), b Decimal) (Decimal, error) {
	var r Decimal
	if _, err := op(&r.d, &a.d, &b.d); err != nil {
		return Decimal{}, ErrInexact
	}
	return fit(r)
}

// Neg returns -a.
func (a Decimal) Neg() Decimal {
	var r Decimal
	if !a.d.IsZero() {
		r.d.Neg(&a.d)
	}
	return r
}

// Cmp returns -1, 0 or 1.
func (a Decimal) Cmp(b Decimal) int { return a.d.Cmp(&b.d) }

// IsZero reports whether a is 0.
func (a Decimal) IsZero() bool { return a.d.IsZero() }

// IsInteger reports whether a has no fraction.
func (a Decimal) IsInteger() bool { return a.d.Exponent >= 0 }

// Int64 returns a as an int64; false if a has a fraction or does not fit.
func (a Decimal) Int64() (int64, bool) {
	if !a.IsInteger() {
		return 0, false
	}
	n, err := a.d.Int64()
	return n, err == nil
}

// String returns a as DynamoDB writes numbers: without an exponent and without needless zeros.
func (a Decimal) String() string { return a.d.Text('f') }
