package main

import (
	"context"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/middleware"
)

// leaseSuffix ends the name of dynamill's table of leases and checkpoints. Lambda keeps those for a handler.
const leaseSuffix = "-leases"

const operationPoll = "GetRecords"

// meter counts the requests of a process, and holds back its GetRecords until it is opened.
type meter struct {
	reached func() // called at the first GetRecords
	gate    chan struct{}

	mu     sync.Mutex
	used   usage
	before time.Duration // CPU time up to the opening
	active time.Time     // of the last write or record
	busy   int           // batches that a handler works at
}

// newMeter makes a meter whose gate is closed.
func newMeter(reached func()) *meter {
	return &meter{reached: sync.OnceFunc(reached), gate: make(chan struct{}), active: time.Now()}
}

// open lets GetRecords through and starts to count.
func (m *meter) open() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used, m.before, m.active = usage{}, cpuTime(), time.Now()
	close(m.gate)
}

// report returns what was used once there was nothing to do for so long.
func (m *meter) report(ctx context.Context, quiet time.Duration) usage {
	for ctx.Err() == nil {
		m.mu.Lock()
		if m.busy > 0 {
			m.active = time.Now()
		}
		left := quiet - time.Since(m.active)
		m.mu.Unlock()
		if left <= 0 {
			break
		}
		time.Sleep(left)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.used
	u.CPU, u.MemoryPeak = cpuTime()-m.before, memoryPeak()
	return u
}

// work notes that a handler works at a batch until done is called.
func (m *meter) work() (done func()) {
	add := func(n int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy, m.active = m.busy+n, time.Now()
	}
	add(1)
	return func() { add(-1) }
}

// attach puts the meter into each client that is made of a configuration.
func (m *meter) attach(to *aws.Config) {
	to.APIOptions = append(to.APIOptions, func(stack *middleware.Stack) error {
		if err := stack.Initialize.Add(middleware.InitializeMiddlewareFunc("peers.Capacity", m.call), middleware.Before); err != nil {
			return err
		}
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("peers.Attempts", m.attempt), "Retry", middleware.After)
	})
}

// call asks for the consumed capacity of a call and adds it up.
func (m *meter) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	lease := strings.HasSuffix(tableOf(in.Parameters), leaseSuffix)
	if _, poll := in.Parameters.(*dynamodbstreams.GetRecordsInput); poll {
		m.reached()
		select {
		case <-m.gate:
		case <-ctx.Done():
		}
	} else {
		in.Parameters = withCapacity(in.Parameters)
	}
	out, data, err := next.HandleInitialize(middleware.WithStackValue(ctx, leaseKey{}, lease), in)
	if err != nil || lease {
		return out, data, err
	}
	units, write := capacityOf(out.Result), isWrite(awsmiddleware.GetOperationName(ctx))
	records := 0
	if page, ok := out.Result.(*dynamodbstreams.GetRecordsOutput); ok {
		records = len(page.Records)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if write {
		m.used.WriteUnits += units
	} else {
		m.used.ReadUnits += units
	}
	m.used.Records += records
	if write || records > 0 {
		m.active = time.Now()
	}
	return out, data, err
}

type leaseKey struct{}

// attempt counts a request that is sent, a repeated one too.
func (m *meter) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	operation := awsmiddleware.GetOperationName(ctx)
	lease, _ := middleware.GetStackValue(ctx, leaseKey{}).(bool)
	m.mu.Lock()
	switch {
	case lease:
		m.used.LeaseRequests++
	case operation == operationPoll:
		m.used.Polls++
	case isWrite(operation):
		m.used.WriteRequests++
		m.active = time.Now()
	case isRead(operation):
		m.used.ReadRequests++
	}
	m.mu.Unlock()
	return next.HandleFinalize(ctx, in)
}

func isWrite(operation string) bool {
	switch operation {
	case "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems", "BatchExecuteStatement", "ExecuteStatement":
		return true
	}
	return false
}

func isRead(operation string) bool {
	switch operation {
	case "GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems":
		return true
	}
	return false
}

// tableOf returns the table that a call names, "" if it names none or several.
func tableOf(input any) string {
	field := reflect.Indirect(reflect.ValueOf(input)).FieldByName("TableName")
	if name, ok := reflectInterface(field).(*string); ok {
		return aws.ToString(name)
	}
	return ""
}

// withCapacity returns a copy of an input that asks for the consumed capacity.
func withCapacity(input any) any {
	given := reflect.ValueOf(input).Elem()
	if !given.FieldByName("ReturnConsumedCapacity").IsValid() {
		return input
	}
	asking := reflect.New(given.Type())
	asking.Elem().Set(given)
	asking.Elem().FieldByName("ReturnConsumedCapacity").Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	return asking.Interface()
}

func capacityOf(output any) (units float64) {
	switch consumed := reflectInterface(reflect.Indirect(reflect.ValueOf(output)).FieldByName("ConsumedCapacity")).(type) {
	case *types.ConsumedCapacity:
		if consumed != nil {
			units = aws.ToFloat64(consumed.CapacityUnits)
		}
	case []types.ConsumedCapacity:
		for _, one := range consumed {
			units += aws.ToFloat64(one.CapacityUnits)
		}
	}
	return units
}

// reflectInterface returns a field's value, nil if there is no such field.
func reflectInterface(field reflect.Value) any {
	if !field.IsValid() {
		return nil
	}
	return field.Interface()
}

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // it cannot fail with these arguments
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// memoryPeak returns the most memory that this process had at a time, in bytes; 0 where there is no /proc.
// What getrusage tells begins with the memory of the process that started this one.
func memoryPeak() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kb, _ := strconv.ParseInt(fields[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}
