package dynamill_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/dynamilltest"
	"github.com/dynamill/dynamill/rules"
)

const ruleFile = `version: 1
table: { keys: [pk, sk] }
entities:
  Group:  { key: { pk: "GROUP#${groupId}", sk: "METADATA" } }
  Member: { key: { pk: "GROUP#${groupId}", sk: "USER#${userId}" } }
rules:
  group-name: { copy: name as groupName, from: Group, to: Member }
`

// A program writes a group with 5,001 members, renames it, and has every member carry the new name.
func Example() {
	ctx := context.Background()
	cfg, err := dynamilltest.New("app", "pk", "sk") // elsewhere: config.LoadDefaultConfig(ctx)
	if err != nil {
		panic(err)
	}
	named, err := rename(ctx, cfg, "app", 5001)
	fmt.Println(named, "members carry the new name", err)
	// Output: 5001 members carry the new name <nil>
}

// rename returns how many members carry the new name of their group.
func rename(ctx context.Context, cfg aws.Config, table string, members int) (named int, err error) {
	set, err := rules.Load("dynamill.yaml", []byte(ruleFile))
	if err != nil {
		return 0, err // every problem of the file, with its line
	}
	client := dynamodb.NewFromConfig(cfg)
	put := func(sk string, more map[string]types.AttributeValue) {
		item := map[string]types.AttributeValue{"pk": text("GROUP#g"), "sk": text(sk)}
		for name, value := range more {
			item[name] = value
		}
		if err == nil {
			_, err = client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item})
		}
	}
	put("METADATA", map[string]types.AttributeValue{"name": text("Old")})
	for i := range members {
		put(fmt.Sprintf("USER#%d", i), nil)
	}
	follow := dynamill.Config{AWS: cfg, Table: table, Rules: set, Drain: true}
	if err == nil {
		err = dynamill.Follow(ctx, follow) // without Drain it follows until ctx ends
	}
	put("METADATA", map[string]types.AttributeValue{"name": text("New")})
	if err == nil {
		err = dynamill.Follow(ctx, follow)
	}
	for pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table}); pages.HasMorePages() && err == nil; {
		var page *dynamodb.ScanOutput
		if page, err = pages.NextPage(ctx); err != nil {
			break
		}
		for _, item := range page.Items {
			if name, ok := item["groupName"].(*types.AttributeValueMemberS); ok && name.Value == "New" {
				named++
			}
		}
	}
	return named, err
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
