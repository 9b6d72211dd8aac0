// Package story reads the examples. It imports examples, rules, change and internal/dynamojson.
package story

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/dynamill/dynamill/change"
	"github.com/dynamill/dynamill/examples"
	"github.com/dynamill/dynamill/internal/dynamojson"
	"github.com/dynamill/dynamill/internal/rules"
)

// Example is one design, ready to be played.
type Example struct {
	Name  string
	Rules []byte // the rule file
	Set   *rules.Set
	Items []change.Item // before the first run
	Story
}

// Story is what happens in an example, as its story.yaml tells it.
type Story struct {
	// ByHand names the counts that a handler written by hand keeps, too, with a bare ADD for each record.
	ByHand []string `yaml:"by_hand"`
	Steps  []Step
}

// Step is one thing that happens to the table.
type Step struct {
	Title, Say string
	Writes     []Write
	// CrashAfter is how many of the engine's writes succeed before its process dies; 0 if it lives.
	CrashAfter int `yaml:"crash_after"`
	// RepeatEvery says which of the step's records are delivered twice: of 3, the third, the sixth and so on; of 0, none.
	RepeatEvery int `yaml:"repeat_every"`
	// Parked is how many items are parked for a rule when the step is done.
	Parked int
}

// Verb is what a Write does to its item.
type Verb string

// The verbs of a story.
const (
	Put    Verb = "put"    // replaces the item whole
	Update Verb = "update" // sets attributes
	Delete Verb = "delete"
)

// Write is one write of the application.
type Write struct {
	Verb Verb
	Item change.Item // for Delete, the key attributes alone
}

// Table is what a story's writes go to.
type Table interface {
	Put(ctx context.Context, item change.Item) error
	Update(ctx context.Context, item change.Item) error // sets the attributes beside the key
	Delete(ctx context.Context, key change.Item) error
}

// Apply carries out the write.
func (w Write) Apply(ctx context.Context, table Table) error {
	switch w.Verb {
	case Put:
		return table.Put(ctx, w.Item)
	case Update:
		return table.Update(ctx, w.Item)
	case Delete:
		return table.Delete(ctx, w.Item)
	}
	return fmt.Errorf("a story knows put, update and delete, not %q", w.Verb)
}

// Names returns the names of all examples, sorted.
func Names() []string {
	found, err := fs.Glob(examples.Files, "*/dynamill.yaml")
	if err != nil {
		panic("story: a bad pattern in the source: " + err.Error())
	}
	for i, path := range found {
		found[i], _, _ = strings.Cut(path, "/")
	}
	return found
}

// Load reads an example by its name. The kinds are those that its rules may have.
func Load(name string, kinds []rules.Kind) (*Example, error) {
	ex := &Example{Name: name}
	var err error
	if ex.Rules, err = examples.Files.ReadFile(name + "/dynamill.yaml"); err != nil {
		return nil, fmt.Errorf("there is no example %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	if ex.Set, err = rules.Load("examples/"+name+"/dynamill.yaml", ex.Rules, kinds); err != nil {
		return nil, err
	}
	if ex.Items, err = loadItems(name + "/items.json"); err != nil {
		return nil, fmt.Errorf("reading example %s/items.json: %w", name, err)
	}
	if ex.Story, err = loadStory(name + "/story.yaml"); err != nil {
		return nil, fmt.Errorf("reading example %s/story.yaml: %w", name, err)
	}
	return ex, nil
}

// batch is the form of `aws dynamodb batch-write-item --request-items`.
type batch map[string][]struct {
	PutRequest struct {
		Item map[string]json.RawMessage
	}
}

func loadItems(path string) (items []change.Item, err error) {
	src, err := examples.Files.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var requests batch
	if err := json.Unmarshal(src, &requests); err != nil {
		return nil, err
	}
	for _, table := range requests {
		for _, request := range table {
			item := change.Item{}
			for name, raw := range request.PutRequest.Item {
				if item[name], err = dynamojson.Decode("attribute "+name, raw); err != nil {
					return nil, err
				}
			}
			items = append(items, item)
		}
	}
	return items, nil
}

func loadStory(path string) (told Story, err error) {
	src, err := examples.Files.ReadFile(path)
	if err != nil {
		return Story{}, err
	}
	err = yaml.UnmarshalWithOptions(src, &told, yaml.Strict())
	return told, err
}

// UnmarshalYAML reads a verb with an item in plain values, without DynamoDB's descriptors.
func (w *Write) UnmarshalYAML(unmarshal func(any) error) error {
	var told map[Verb]map[string]any
	if err := unmarshal(&told); err != nil {
		return err
	}
	for verb, plain := range told {
		item, err := fromPlain(plain)
		if err != nil {
			return err
		}
		*w = Write{Verb: verb, Item: item}
	}
	return nil
}

func fromPlain(plain map[string]any) (change.Item, error) {
	item := change.Item{}
	for name, v := range plain {
		value, err := fromPlainValue(v)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		item[name] = value
	}
	return item, nil
}

func fromPlainValue(plain any) (change.Value, error) {
	switch v := plain.(type) {
	case string:
		return change.String(v), nil
	case bool:
		return change.Bool(v), nil
	case nil:
		return change.Null(), nil
	case int64, uint64, float64:
		return change.Number(fmt.Sprint(v)), nil
	case []any:
		var elements []change.Value
		for _, element := range v {
			value, err := fromPlainValue(element)
			if err != nil {
				return change.Value{}, err
			}
			elements = append(elements, value)
		}
		return change.List(elements), nil
	}
	return change.Value{}, fmt.Errorf("a story holds texts, numbers, truth values, null and lists only, not %T", plain)
}
