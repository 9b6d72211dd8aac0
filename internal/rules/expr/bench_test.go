package expr

import (
	"testing"

	"github.com/dynamill/dynamill/change"
)

func BenchmarkCondition(b *testing.B) {
	it := change.Item{"role": change.String("member"), "count": change.Number("12.5"), "name": change.String("Ann")}
	for name, source := range map[string]string{
		"unequal": `role != "banned"`, "list": `role in ["admin", "owner", "member"]`, "number": `count >= 12.5`,
		"several": `role != "banned" && count > 3 && name.startsWith("A") && !has(deletedAt)`,
	} {
		b.Run(name, func(b *testing.B) {
			p, err := Compile(source)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := p.Condition(it.Lookup); err != nil || !ok {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

func BenchmarkAmount(b *testing.B) {
	it := change.Item{"price": change.Number("19.90"), "quantity": change.Number("3")}
	p, err := Compile("price * quantity")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := p.Amount(it.Lookup); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}
