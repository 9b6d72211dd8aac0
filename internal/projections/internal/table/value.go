package table

import (
	"strconv"

	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Row is an item of the state table, or a part of one.
type Row = map[string]ddb.AttributeValue

// Text is a text as the SDK wants it.
func Text(s string) ddb.AttributeValue { return &ddb.AttributeValueMemberS{Value: s} }

// Number is a whole number as the SDK wants it.
func Number(n int64) ddb.AttributeValue {
	return &ddb.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// TextOf returns the text of an S or N, "" of anything else.
func TextOf(v ddb.AttributeValue) string {
	switch v := v.(type) {
	case *ddb.AttributeValueMemberS:
		return v.Value
	case *ddb.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

// NumberOf returns a whole number, 0 of anything else.
func NumberOf(v ddb.AttributeValue) int64 {
	n, _ := strconv.ParseInt(TextOf(v), 10, 64)
	return n
}

// TextsOf returns the members of a set of texts, none of anything else.
func TextsOf(v ddb.AttributeValue) []string {
	if set, ok := v.(*ddb.AttributeValueMemberSS); ok {
		return set.Value
	}
	return nil
}
