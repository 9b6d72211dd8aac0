package main

import (
	"context"
	_ "embed" // of the script below
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime/debug"

	"github.com/dynamill/dynamill"
	"github.com/dynamill/dynamill/rules"
)

// contender follows a table until ctx ends.
type contender func(ctx context.Context, j job, m *meter) error

const (
	nameDynamill   = "dynamill"
	nameReferences = "dynamill, by references"

	nameLambdaStream = "aws-lambda-stream, 16 at once"
)

// handlers are the contenders that are written by hand. A name says which requests are sent.
var handlers = map[string]handler{
	"bare ADD, 16 at once":           countBare,
	"ADD of each batch's sums":       countBatched,
	"claim and ADD in a transaction": countClaimed,
	"UpdateItem, 16 at once":         copying(writeEach),
	"BatchExecuteStatement of 25":    copying(writeStatements),
	"PutItem, 16 at once":            mirrorEach,
	"BatchWriteItem of 25":           mirrorBatched,
}

// lambdaStream is a handler written with the npm package aws-lambda-stream. It runs in Node.js.
//
//go:embed lambdastream/contender.js
var lambdaStream string

// process returns the command of a contender's process.
func (o options) process(ctx context.Context, contender string) (*exec.Cmd, error) {
	if contender == nameLambdaStream {
		process := exec.CommandContext(ctx, "node", "-e", lambdaStream)
		process.Env = append(os.Environ(), "NODE_PATH="+o.lambdaStream, "NODE_NO_WARNINGS=1") // about versions to come
		return process, nil
	}
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, own, modeContender), nil
}

func isDynamill(name string) bool { return name == nameDynamill || name == nameReferences }

func contenderOf(j job) (contender, error) {
	if isDynamill(j.Contender) {
		return followDynamill, nil
	}
	if handle, ok := handlers[j.Contender]; ok {
		return byHand(handle), nil
	}
	return nil, fmt.Errorf("no contender is called %q", j.Contender)
}

// rulesOf are the rules that do what a workload asks for.
func rulesOf(j job) string {
	if j.Contender == nameReferences {
		return referenceRules
	}
	return j.Rules
}

// followDynamill follows the table in the way that a program of a user does.
func followDynamill(ctx context.Context, j job, m *meter) error {
	set, err := rules.Load("dynamill.yaml", []byte(rulesOf(j)))
	if err != nil {
		return err
	}
	config := j.Endpoint.config()
	m.attach(&config)
	debug.SetGCPercent(50) // as dynamill run does
	return dynamill.Follow(ctx, dynamill.Config{
		AWS: config, Table: j.Table, Rules: set, Drain: j.Prepare,
		LeaseTable: j.Table + leaseSuffix,
		Logger:     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
}
