package sources

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/decimal"
)

// normalized is a source whose pages have each key once, with numbers in DynamoDB's form: people write 5 as 5.0 or as a
// text. Under another spelling its item would count as gone, and a text that is no number would end the replay.
type normalized struct {
	Source
	names   KeyNames
	numbers map[string]bool // by attribute
}

// Normalize makes a source whose pages have each key once, with numbers as the table has them. It describes the table, whose
// definition says which of its key attributes are numbers.
func Normalize(ctx context.Context, source Source, of ScanConfig) (Source, error) {
	out, err := of.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &of.Table})
	if err != nil {
		return nil, fmt.Errorf("describing table %s: %w", of.Table, err)
	}
	n := normalized{source, of.Keys, map[string]bool{}}
	for _, attribute := range out.Table.AttributeDefinitions {
		n.numbers[aws.ToString(attribute.AttributeName)] = attribute.AttributeType == types.ScalarAttributeTypeN
	}
	return n, nil
}

// Read reads a page of the source. Its Items count all that the source has read.
func (n normalized) Read(ctx context.Context, piece Piece, cursor string) (Page, error) {
	page, err := n.Source.Read(ctx, piece, cursor)
	if err != nil {
		return page, err
	}
	seen := make(map[change.Key]bool, len(page.Keys))
	keys := make([]change.Key, 0, len(page.Keys))
	for _, key := range page.Keys {
		own, err := n.key(key)
		if err != nil {
			return Page{}, err
		}
		if !seen[own] {
			seen[own] = true
			keys = append(keys, own)
		}
	}
	page.Keys = keys
	return page, nil
}

func (n normalized) key(key change.Key) (own change.Key, err error) {
	if own.Partition, err = n.text(n.names.Partition, key.Partition); err == nil && n.names.Sort != "" {
		own.Sort, err = n.text(n.names.Sort, key.Sort)
	}
	if err != nil {
		return own, fmt.Errorf("%s is not a key of the table: %w", key, err)
	}
	return own, nil
}

func (n normalized) text(name, text string) (string, error) {
	if !n.numbers[name] {
		return text, nil
	}
	number, err := decimal.Parse(text)
	if err != nil {
		return "", fmt.Errorf("key attribute %s is a number in the table: %w", name, err)
	}
	return number.String(), nil
}
