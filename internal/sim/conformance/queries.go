package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type queryCase struct {
	text string
	vals item // beside :p
	want []string
}

// queryCases run on the sort keys a, ab, abc, b, c; want is nil for what is invalid.
var queryCases = []queryCase{
	{"pk = :p", nil, []string{"a", "ab", "abc", "b", "c"}},
	{"pk = :p AND sk = :v", item{":v": str("b")}, []string{"b"}},
	{"sk = :v AND pk = :p", item{":v": str("b")}, []string{"b"}},
	{"(pk = :p) AND (sk = :v)", item{":v": str("b")}, []string{"b"}},
	{"pk = :p AND sk < :v", item{":v": str("b")}, []string{"a", "ab", "abc"}},
	{"pk = :p AND sk <= :v", item{":v": str("b")}, []string{"a", "ab", "abc", "b"}},
	{"pk = :p AND sk > :v", item{":v": str("ab")}, []string{"abc", "b", "c"}},
	{"pk = :p AND sk >= :v", item{":v": str("ab")}, []string{"ab", "abc", "b", "c"}},
	{"pk = :p AND sk BETWEEN :v AND :w", item{":v": str("ab"), ":w": str("b")}, []string{"ab", "abc", "b"}},
	{"pk = :p AND begins_with(sk, :v)", item{":v": str("ab")}, []string{"ab", "abc"}},
	{"pk = :p AND begins_with(sk, :v)", item{":v": str("zz")}, []string{}},
	{"pk = :p AND begins_with(sk, :v)", item{":v": str(strings.Repeat("z", 1024))}, []string{}},
	{"pk = :p AND begins_with(sk, :v)", item{":v": str(strings.Repeat("z", 1025))}, nil},
	{"pk = :p AND sk = :v", item{":v": str(strings.Repeat("z", 1025))}, nil},
	{"pk = :p AND sk <> :v", item{":v": str("b")}, nil},
	{"pk = :p OR sk = :v", item{":v": str("b")}, nil},
	{"pk = :p AND contains(sk, :v)", item{":v": str("b")}, nil},
	{"pk = :p AND sk IN (:v)", item{":v": str("b")}, nil},
	{"pk = :p AND NOT sk = :v", item{":v": str("b")}, nil},
	{"pk > :p", nil, nil},
	{"begins_with(pk, :p)", nil, nil},
	{"sk = :p", nil, nil},
	{"pk = :p AND other = :v", item{":v": str("b")}, nil},
	{"pk = :p AND sk = :v", item{":v": num("1")}, nil},
	{"pk = :p AND sk > :v AND sk < :w", item{":v": str("a"), ":w": str("c")}, nil},
	{"pk = :p AND sk BETWEEN :w AND :v", item{":v": str("ab"), ":w": str("b")}, nil},
	{"pk = :p", item{":unused": str("b")}, nil},
	{"pk = :p AND sk = pk", nil, nil},
	{"", nil, nil},
}

func sortKeys(items []map[string]types.AttributeValue) []string {
	keys := []string{}
	for _, it := range items {
		switch v := it["sk"].(type) {
		case *types.AttributeValueMemberS:
			keys = append(keys, v.Value)
		case *types.AttributeValueMemberN:
			keys = append(keys, v.Value)
		}
	}
	return keys
}

func wantKeys(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func (s *suite) testQueries(t *testing.T) {
	pk := s.letters(t)
	for _, c := range queryCases {
		t.Run(c.text, func(t *testing.T) {
			vals := item{":p": str(pk)}
			for name, v := range c.vals {
				vals[name] = v
			}
			out, err := s.Tables.Query(t.Context(), &dynamodb.QueryInput{TableName: &s.texts, KeyConditionExpression: &c.text,
				ExpressionAttributeValues: vals})
			if c.want == nil {
				wantInvalid(t, err)
				return
			}
			wantNoError(t, err)
			wantKeys(t, sortKeys(out.Items), c.want)
			if int(out.Count) != len(c.want) || int(out.ScannedCount) != len(c.want) || out.LastEvaluatedKey != nil {
				t.Errorf("got count %d, scanned %d, last key %v", out.Count, out.ScannedCount, out.LastEvaluatedKey)
			}
		})
	}
}

// letters puts the items a, ab, abc, b, c of one partition key.
func (s *suite) letters(t *testing.T) (pk string) {
	t.Helper()
	pk = partition(t)
	for i, sk := range []string{"c", "ab", "b", "abc", "a"} {
		s.put(t, with(pk, sk, item{"n": num(fmt.Sprint(i)), "big": str(strings.Repeat("x", 1000))}))
	}
	return pk
}

// all asks for a whole collection.
func (s *suite) all(pk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{TableName: &s.texts, KeyConditionExpression: aws.String("pk = :p"),
		ExpressionAttributeValues: item{":p": str(pk)}, ConsistentRead: aws.Bool(true)}
}

func (s *suite) testPages(t *testing.T) {
	pk := s.letters(t)
	for _, forward := range []bool{true, false} {
		for _, limit := range []int32{1, 2, 5} {
			t.Run(fmt.Sprintf("pages of %d, forward %t", limit, forward), func(t *testing.T) {
				in := s.all(pk)
				in.Limit, in.ScanIndexForward = &limit, &forward
				want := []string{"a", "ab", "abc", "b", "c"}
				if !forward {
					slices.Reverse(want)
				}
				wantKeys(t, s.queryAll(t, in), want)
			})
		}
	}
	t.Run("a page that its limit ends has a last key even at the end", func(t *testing.T) {
		in := s.all(pk)
		in.Limit = aws.Int32(5)
		out, err := s.Tables.Query(t.Context(), in)
		wantNoError(t, err)
		wantItem(t, out.LastEvaluatedKey, key(pk, "c"))
	})
	t.Run("a start key need not exist", func(t *testing.T) {
		in := s.all(pk)
		in.ExclusiveStartKey = key(pk, "abb")
		wantKeys(t, s.queryAll(t, in), []string{"abc", "b", "c"})
		in.ExclusiveStartKey, in.ScanIndexForward = key(pk, "abb"), aws.Bool(false)
		wantKeys(t, s.queryAll(t, in), []string{"ab", "a"})
	})
	t.Run("a start key of another collection is refused", func(t *testing.T) {
		in := s.all(pk)
		in.ExclusiveStartKey = key("other", "a")
		_, err := s.Tables.Query(t.Context(), in)
		wantInvalid(t, err)
	})
}

func (s *suite) testFilters(t *testing.T) {
	pk := s.letters(t)
	t.Run("a filter is applied after the limit", func(t *testing.T) {
		in := s.all(pk)
		in.Limit, in.FilterExpression = aws.Int32(3), aws.String("n > :n")
		in.ExpressionAttributeValues[":n"] = num("2")
		out, err := s.Tables.Query(t.Context(), in)
		wantNoError(t, err)
		wantKeys(t, sortKeys(out.Items), []string{"a", "abc"})
		if out.Count != 2 || out.ScannedCount != 3 || out.LastEvaluatedKey == nil {
			t.Errorf("got count %d, scanned %d, last key %v", out.Count, out.ScannedCount, out.LastEvaluatedKey)
		}
	})
	t.Run("a filter on a key attribute is refused", func(t *testing.T) {
		in := s.all(pk)
		in.FilterExpression = aws.String("sk > :n")
		in.ExpressionAttributeValues[":n"] = str("a")
		_, err := s.Tables.Query(t.Context(), in)
		wantInvalid(t, err)
	})
	t.Run("a projection picks", func(t *testing.T) {
		in := s.all(pk)
		in.Limit, in.ProjectionExpression = aws.Int32(1), aws.String("n")
		out, err := s.Tables.Query(t.Context(), in)
		wantNoError(t, err)
		wantItem(t, out.Items[0], item{"n": num("4")})
	})
	t.Run("a count has no items", func(t *testing.T) {
		in := s.all(pk)
		in.Select = types.SelectCount
		out, err := s.Tables.Query(t.Context(), in)
		wantNoError(t, err)
		if out.Count != 5 || len(out.Items) != 0 {
			t.Errorf("got count %d and %d items", out.Count, len(out.Items))
		}
	})
	t.Run("a limit of 0 is refused", func(t *testing.T) {
		in := s.all(pk)
		in.Limit = aws.Int32(0)
		_, err := s.Tables.Query(t.Context(), in)
		wantInvalid(t, err)
	})
}

func (s *suite) testOrderAndSize(t *testing.T) {
	pk := partition(t)
	t.Run("numbers sort as numbers", func(t *testing.T) {
		for _, n := range []string{"10", "9", "-1", "0.5", "100", "-20"} {
			_, err := s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.numbers, Item: item{"pk": str(pk), "sk": num(n)}})
			wantNoError(t, err)
		}
		in := s.all(pk)
		in.TableName = &s.numbers
		wantKeys(t, s.queryAll(t, in), []string{"-20", "-1", "0.5", "9", "10", "100"})
		in.KeyConditionExpression = aws.String("pk = :p AND sk BETWEEN :v AND :w")
		in.ExpressionAttributeValues = item{":p": str(pk), ":v": num("0"), ":w": num("10.0")}
		wantKeys(t, s.queryAll(t, in), []string{"0.5", "9", "10"})
	})
	t.Run("a page ends at 1 MB", func(t *testing.T) {
		pk, want := partition(t), []string{}
		for i := range 6 {
			want = append(want, fmt.Sprint(i))
			s.put(t, with(pk, fmt.Sprint(i), item{"big": str(strings.Repeat("x", 300<<10))}))
		}
		in := s.all(pk)
		out, err := s.Tables.Query(t.Context(), in)
		wantNoError(t, err)
		if n := len(out.Items); n < 3 || n > 4 || out.LastEvaluatedKey == nil {
			t.Errorf("got %d items of 300 KB, last key %v", n, out.LastEvaluatedKey)
		}
		wantKeys(t, s.queryAll(t, in), want)
	})
}

func (s *suite) queryAll(t *testing.T, in *dynamodb.QueryInput) []string {
	t.Helper()
	keys := []string{}
	for {
		out, err := s.Tables.Query(t.Context(), in)
		wantNoError(t, err)
		keys = append(keys, sortKeys(out.Items)...)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return keys
		}
	}
}

func (s *suite) testScans(t *testing.T) {
	name := s.texts + "-scans"
	s.create(t, name, types.ScalarAttributeTypeS, false)
	var want []string
	for i := range 10 {
		for j := range 4 {
			sk := fmt.Sprintf("%d.%d", i, j)
			want = append(want, sk)
			_, err := s.Tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name,
				Item: with(fmt.Sprint(i), sk, item{"j": num(fmt.Sprint(j))})})
			wantNoError(t, err)
		}
	}
	for _, limit := range []int32{1, 3, 100} {
		for _, total := range []int32{1, 3} {
			t.Run(fmt.Sprintf("pages of %d in %d segments see every item once", limit, total), func(t *testing.T) {
				var got []string
				for segment := range total {
					in := &dynamodb.ScanInput{TableName: &name, Limit: &limit, Segment: &segment, TotalSegments: &total, ConsistentRead: aws.Bool(true)}
					got = append(got, s.scanAll(t, in)...)
				}
				slices.Sort(got)
				wantKeys(t, got, want)
			})
		}
	}
	t.Run("a filter may look at keys", func(t *testing.T) {
		in := &dynamodb.ScanInput{TableName: &name, FilterExpression: aws.String("pk = :p AND j >= :j"),
			ExpressionAttributeValues: item{":p": str("3"), ":j": num("2")}}
		wantKeys(t, s.scanAll(t, in), []string{"3.2", "3.3"})
	})
	t.Run("a segment has to be one of them", func(t *testing.T) {
		_, err := s.Tables.Scan(t.Context(), &dynamodb.ScanInput{TableName: &name, Segment: aws.Int32(3), TotalSegments: aws.Int32(3)})
		wantInvalid(t, err)
		_, err = s.Tables.Scan(t.Context(), &dynamodb.ScanInput{TableName: &name, Segment: aws.Int32(0)})
		wantInvalid(t, err)
	})
	t.Run("an item that is deleted between pages does no harm", func(t *testing.T) {
		in := &dynamodb.ScanInput{TableName: &name, Limit: aws.Int32(7)}
		out, err := s.Tables.Scan(t.Context(), in)
		wantNoError(t, err)
		_, err = s.Tables.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: out.LastEvaluatedKey})
		wantNoError(t, err)
		in.ExclusiveStartKey = out.LastEvaluatedKey
		got := append(sortKeys(out.Items), s.scanAll(t, in)...)
		slices.Sort(got)
		wantKeys(t, got, want)
	})
}

func (s *suite) scanAll(t *testing.T, in *dynamodb.ScanInput) []string {
	t.Helper()
	keys := []string{}
	for {
		out, err := s.Tables.Scan(t.Context(), in)
		wantNoError(t, err)
		keys = append(keys, sortKeys(out.Items)...)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return keys
		}
	}
}
