package sources_test

import (
	gocmp "cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/internal/pace"
	"github.com/dynamill/dynamill/internal/replay/sources"
	"github.com/dynamill/dynamill/internal/sim/dynamosim"
)

var blogKeys = sources.KeyNames{Partition: "pk", Sort: "sk"}

// makeTable creates table app with n items; the sort key is a number where sortType says so.
func makeTable(t *testing.T, sim *dynamosim.Sim, sortType types.ScalarAttributeType, n int) []change.Key {
	t.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: aws.String("app"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
	}
	if sortType != "" {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("sk"),
			AttributeType: sortType})
	}
	if _, err := sim.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	keys := make([]change.Key, n)
	for i := range keys {
		keys[i] = change.Key{Partition: fmt.Sprintf("USER#%d", i%97)}
		item := map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: strings.Repeat("x", 200)}}
		switch sortType {
		case types.ScalarAttributeTypeN:
			keys[i].Sort = fmt.Sprint(i - 5)
			item["sk"] = &types.AttributeValueMemberN{Value: keys[i].Sort}
		case types.ScalarAttributeTypeS:
			keys[i].Sort = fmt.Sprintf("POST#<%d>", i)
			item["sk"] = &types.AttributeValueMemberS{Value: keys[i].Sort}
		default:
			keys[i].Partition = fmt.Sprintf("USER#%d", i)
		}
		item["pk"] = &types.AttributeValueMemberS{Value: keys[i].Partition}
		if _, err := sim.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("app"), Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// readAll reads every piece of a source. With begun, each page comes from a source of
// its own, as after a restart of the process.
func readAll(t *testing.T, source sources.Source, begun func() sources.Source) ([]change.Key, sources.Page) {
	t.Helper()
	pieces, err := source.Pieces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var keys []change.Key
	var sum sources.Page
	for _, piece := range pieces {
		for cursor, pages := "", 0; ; pages++ {
			if begun != nil {
				source = begun()
			}
			page, err := source.Read(t.Context(), piece, cursor)
			if err != nil {
				t.Fatalf("piece %q from %q: %v", piece.Name, cursor, err)
			}
			keys = append(keys, page.Keys...)
			sum.Items, sum.ReadUnits, sum.Skipped = sum.Items+page.Items, sum.ReadUnits+page.ReadUnits, sum.Skipped+page.Skipped
			if page.Last {
				break
			}
			if page.Next == cursor || pages > 10_000 {
				t.Fatalf("piece %q makes no progress behind %q", piece.Name, cursor)
			}
			cursor = page.Next
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys, sum
}

func compareKeys(a, b change.Key) int {
	return gocmp.Or(strings.Compare(a.Partition, b.Partition), strings.Compare(a.Sort, b.Sort))
}

func sortedKeys(keys []change.Key) []change.Key {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, compareKeys)
	return keys
}

func TestAScanGivesEveryKeyOnceAlsoAfterRestartsBetweenPages(t *testing.T) {
	for name, sortType := range map[string]types.ScalarAttributeType{
		"text sort key": types.ScalarAttributeTypeS, "number sort key": types.ScalarAttributeTypeN, "no sort key": "",
	} {
		t.Run(name, func(t *testing.T) {
			sim := dynamosim.New(dynamosim.Options{Seed: 1})
			want := makeTable(t, sim, sortType, 3_000)
			names := blogKeys
			if sortType == "" {
				names.Sort = ""
			}
			for _, segments := range []int{1, 3} {
				open := func() sources.Source {
					scan, err := sources.NewScan(t.Context(), sources.ScanConfig{Client: sim, Table: "app", Keys: names, Segments: segments})
					if err != nil {
						t.Fatal(err)
					}
					return scan
				}
				got, sum := readAll(t, open(), open)
				if diff := cmp.Diff(sortedKeys(want), got); diff != "" {
					t.Fatalf("%d segments (-want +got):\n%s", segments, diff)
				}
				if sum.Items != 3_000 || sum.ReadUnits < 3_000*200/4096 {
					t.Errorf("looked at %d items for %v read units", sum.Items, sum.ReadUnits)
				}
			}
		})
	}
}

// answers is a ScanClient that gives prepared answers and notes what it is asked.
type answers struct {
	table types.TableDescription
	pages []*dynamodb.ScanOutput
	asked []*dynamodb.ScanInput
}

func (a *answers) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	a.asked = append(a.asked, in)
	return a.pages[min(len(a.asked), len(a.pages))-1], nil
}

func (a *answers) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput,
	error) {
	return &dynamodb.DescribeTableOutput{Table: &a.table}, nil
}

func TestTheNumberOfSegmentsFollowsTheTablesSize(t *testing.T) {
	for _, test := range []struct {
		megabytes int64
		given     int
		want      string
	}{
		{0, 0, "scan of app, 8 segments"},
		{1_600, 0, "scan of app, 16 segments"},
		{1_601, 0, "scan of app, 17 segments"},
		{10_000_000, 0, "scan of app, 1000 segments"},
		{10_000_000, 5, "scan of app, 5 segments"},
	} {
		client := &answers{table: types.TableDescription{TableSizeBytes: aws.Int64(test.megabytes << 20), ItemCount: aws.Int64(1_001)}}
		scan, err := sources.NewScan(t.Context(), sources.ScanConfig{Client: client, Table: "app", Keys: blogKeys, Segments: test.given})
		if err != nil {
			t.Fatal(err)
		}
		if scan.Describe() != test.want {
			t.Errorf("%d MB, %d given: %q, want %q", test.megabytes, test.given, scan.Describe(), test.want)
		}
		pieces, err := scan.Pieces(t.Context())
		if err != nil || len(pieces) != scan.Segments() || pieces[0].Items != int64((1_001+len(pieces)-1)/len(pieces)) {
			t.Errorf("%d pieces of %d segments, the first of %d items: %v", len(pieces), scan.Segments(), pieces[0].Items, err)
		}
	}
	for _, segments := range []int{-1, 1_000_001} {
		if _, err := sources.NewScan(t.Context(), sources.ScanConfig{Client: &answers{}, Table: "app", Keys: blogKeys,
			Segments: segments}); err == nil {
			t.Errorf("%d segments are accepted", segments)
		}
	}
}

func TestScanReadsKeysOnlyAndConsistently(t *testing.T) {
	for _, eventually := range []bool{false, true} {
		client := &answers{pages: []*dynamodb.ScanOutput{{}}}
		scan, err := sources.NewScan(t.Context(), sources.ScanConfig{Client: client, Table: "app", Keys: blogKeys, Segments: 2,
			EventuallyConsistent: eventually})
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, scan, nil)
		in := client.asked[1]
		keys := map[string]string{"#a0": "pk", "#a1": "sk"}
		if *in.ConsistentRead == eventually || *in.Segment != 1 || *in.TotalSegments != 2 ||
			*in.ProjectionExpression != "#a0, #a1" || !maps.Equal(in.ExpressionAttributeNames, keys) {
			t.Errorf("asked %+v", in)
		}
	}
}

func TestPiecesAndCursorsOfAnotherScanAreRefused(t *testing.T) {
	scan, err := sources.NewScan(t.Context(), sources.ScanConfig{Client: &answers{pages: []*dynamodb.ScanOutput{{}}}, Table: "app",
		Keys: blogKeys, Segments: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ piece, cursor, want string }{
		{"segment 1 of 3", "", "is no piece"},
		{"segment 3 of 2", "", "is no piece"},
		{"file 1", "", "is no piece"},
		{"segment 1 of 2", "17", "is no key"},
		{"segment 1 of 2", `{"pk":{"S":"a"}}`, "has not the table's key attributes"},
		{"segment 1 of 2", `{"pk":{"S":"a"},"sk":{"B":"a"}}`, `is no key: cursor.M.sk.B: "a" is not base64`},
	} {
		_, err := scan.Read(t.Context(), sources.Piece{Name: test.piece}, test.cursor)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("piece %q, cursor %q: %v, want %q", test.piece, test.cursor, err, test.want)
		}
	}
}

func TestATableWithBinaryKeysIsRefused(t *testing.T) {
	item := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberB{Value: []byte("x")},
		"sk": &types.AttributeValueMemberS{Value: "x"}}
	client := &answers{pages: []*dynamodb.ScanOutput{{Items: []map[string]types.AttributeValue{item}}}}
	scan, err := sources.NewScan(t.Context(), sources.ScanConfig{Client: client, Table: "app", Keys: blogKeys, Segments: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = scan.Read(t.Context(), sources.Piece{Name: "segment 1 of 1"}, ""); err == nil || !strings.Contains(err.Error(), "binary") {
		t.Errorf("error %v", err)
	}
}

func TestSegmentsShareTheReadRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 40 pages of 100 read units at 200 units a second take 20 seconds, less the last page's own.
		client := &answers{pages: []*dynamodb.ScanOutput{{ConsumedCapacity: &types.ConsumedCapacity{CapacityUnits: aws.Float64(100)}}}}
		scan, err := sources.NewScan(t.Context(), sources.ScanConfig{Client: client, Table: "app", Keys: blogKeys, Segments: 40,
			Pace: pace.New(200)})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, sum := readAll(t, scan, nil); sum.ReadUnits != 4_000 {
			t.Errorf("%v read units", sum.ReadUnits)
		}
		if took := time.Since(began); took < 19*time.Second || took > 20*time.Second {
			t.Errorf("4,000 units at 200 a second took %s", took)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if _, err := scan.Read(stopped, sources.Piece{Name: "segment 1 of 40"}, ""); err == nil {
			t.Error("a stopped scan reads on")
		}
	})
}
