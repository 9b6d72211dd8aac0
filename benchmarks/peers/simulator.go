package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynamill/dynamill/internal/sim/dynamosim"
	"github.com/dynamill/dynamill/internal/sim/simserver"
)

// simulation configures a simulator's process.
type simulation struct {
	Delays delays
	Shards int // open ones of the stream; 1 if 0
}

// delays are how long requests of contenders take.
type delays struct {
	Operations map[string]time.Duration
	Item       time.Duration // on top, for each item of a batch or a transaction
}

// assumedDelays are what a client in the same Region sees of AWS, about. AWS promises "single-digit
// milliseconds" for single items, and nothing for the others.
func assumedDelays() delays {
	ms := time.Millisecond
	return delays{Item: ms / 10, Operations: map[string]time.Duration{
		"GetItem": 4 * ms, "PutItem": 5 * ms, "UpdateItem": 5 * ms, "DeleteItem": 5 * ms, "Query": 10 * ms, "Scan": 10 * ms,
		"BatchGetItem": 8 * ms, "BatchWriteItem": 10 * ms, "BatchExecuteStatement": 10 * ms, "TransactWriteItems": 15 * ms,
		"GetRecords": 10 * ms, "GetShardIterator": 5 * ms, "DescribeStream": 10 * ms, "DescribeTable": 5 * ms,
	}}
}

// flags has a flag for each delay.
func (d *delays) flags(set *flag.FlagSet) {
	for name, assumed := range d.Operations {
		set.Func("delay-"+name, fmt.Sprintf("how long a `request` takes at the simulator (default %v)", assumed), func(text string) error {
			given, err := time.ParseDuration(text)
			d.Operations[name] = given
			return err
		})
	}
	set.DurationVar(&d.Item, "delay-item", d.Item, "how much longer a request takes for each item of a batch or a transaction")
}

// uniform are delays that are all the same.
func (d *delays) uniform(each time.Duration) delays {
	same := delays{Operations: map[string]time.Duration{}}
	for name := range d.Operations {
		same.Operations[name] = each
	}
	return same
}

// of returns how long a request takes. The application and the observer wait for nothing.
func (d *delays) of(key, operation string, input any) time.Duration {
	if key != contenderKey {
		return 0
	}
	return d.Operations[operation] + time.Duration(items(input))*d.Item
}

// items returns how many items a batch or a transaction names.
func items(input any) (n int) {
	switch in := input.(type) {
	case *dynamodb.TransactWriteItemsInput:
		return len(in.TransactItems)
	case *dynamodb.BatchWriteItemInput:
		for _, requests := range in.RequestItems {
			n += len(requests)
		}
	case *dynamodb.BatchGetItemInput:
		for _, keys := range in.RequestItems {
			n += len(keys.Keys)
		}
	case *dynamodb.BatchExecuteStatementInput:
		return len(in.Statements)
	}
	return n
}

// usagePath is where the simulator tells what it has billed, and refused writes with it.
const usagePath = "/usage"

// simulate is the main function of the simulator's process. It writes its address, and ends with its input.
func simulate(in io.Reader, out io.Writer) error {
	var how simulation
	if err := json.NewDecoder(in).Decode(&how); err != nil {
		return fmt.Errorf("reading what to simulate: %w", err)
	}
	sim := dynamosim.New(dynamosim.Options{Shards: how.Shards})
	mux := http.NewServeMux()
	mux.Handle("/", simserver.New(sim, how.Delays.of))
	mux.HandleFunc(usagePath, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(sim.Usage()) // the client is gone if it fails
	})
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = server.Close()
	}()
	if _, err := fmt.Fprintf(out, "%q\n", "http://"+listener.Addr().String()); err != nil {
		return err
	}
	_ = server.Serve(listener) // it says that it was closed
	return nil
}
