package attributes

import (
	"testing"

	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/dynamill/dynamill/change"
)

func TestValuesOfEveryKindSurviveTheWayToTheTableAndBack(t *testing.T) {
	for name, v := range map[string]change.Value{
		"S": change.String("é"), "empty S": change.String(""), "N": change.Number("-0.5"), "B": change.Binary([]byte{0, 255}),
		"BOOL": change.Bool(true), "NULL": change.Null(),
		"L":  change.List([]change.Value{change.String("a"), change.List(nil), change.Map(map[string]change.Value{"x": change.Null()})}),
		"M":  change.Map(map[string]change.Value{"l": change.List([]change.Value{change.Bool(false)})}),
		"SS": change.Set(change.KindStringSet, []string{"b", "a"}),
		"NS": change.Set(change.KindNumberSet, []string{"2", "1"}),
		"BS": change.Set(change.KindBinarySet, []string{"\x00", "\xff"}),
	} {
		if back := FromTable(ToTable(v)); !back.Equal(v) {
			t.Errorf("%s: %v comes back as %v", name, v, back)
		}
		if FromTable(ToTable(v)).Kind() == change.KindAbsent {
			t.Errorf("%s is lost", name)
		}
	}
	if ToTable(change.Value{}) != nil || FromTable(nil).Kind() != change.KindAbsent || FromStream(nil).Kind() != change.KindAbsent {
		t.Error("what is absent does not stay absent")
	}
}

func TestAStreamImageDecodesEveryKind(t *testing.T) {
	im := StreamImage{
		"s":    &streams.AttributeValueMemberS{Value: "x"},
		"n":    &streams.AttributeValueMemberN{Value: "1"},
		"b":    &streams.AttributeValueMemberB{Value: []byte{7}},
		"bool": &streams.AttributeValueMemberBOOL{Value: true},
		"null": &streams.AttributeValueMemberNULL{Value: true},
		"ss":   &streams.AttributeValueMemberSS{Value: []string{"a", "b"}},
		"ns":   &streams.AttributeValueMemberNS{Value: []string{"1", "2"}},
		"bs":   &streams.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}},
		"l":    &streams.AttributeValueMemberL{Value: []streams.AttributeValue{&streams.AttributeValueMemberS{Value: "y"}}},
		"m":    &streams.AttributeValueMemberM{Value: map[string]streams.AttributeValue{"z": &streams.AttributeValueMemberN{Value: "2"}}},
	}
	want := change.Item{
		"s": change.String("x"), "n": change.Number("1"), "b": change.Binary([]byte{7}), "bool": change.Bool(true), "null": change.Null(),
		"ss": change.Set(change.KindStringSet, []string{"b", "a"}), "ns": change.Set(change.KindNumberSet, []string{"2", "1"}),
		"bs": change.Set(change.KindBinarySet, []string{"\x01", "\x02"}),
		"l":  change.List([]change.Value{change.String("y")}), "m": change.Map(map[string]change.Value{"z": change.Number("2")}),
	}
	seen := 0
	for name, v := range im.All() {
		seen++
		if !v.Equal(want[name]) || !im.Lookup(name).Equal(v) {
			t.Errorf("%s is %v, want %v", name, v, want[name])
		}
	}
	if seen != len(want) {
		t.Errorf("%d attributes, want %d", seen, len(want))
	}
}
