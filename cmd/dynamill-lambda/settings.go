package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

type settings struct {
	rules             string // DYNAMILL_RULES: see loadRules
	table, stateTable string // DYNAMILL_TABLE, DYNAMILL_STATE_TABLE
	endpoint          string // DYNAMILL_ENDPOINT: of DynamoDB, for tests
	fanOutMax         int    // DYNAMILL_FAN_OUT_MAX: 0 for the engine's default
	besideRun         bool   // DYNAMILL_BESIDE_RUN: true, or not set
	logLevel          slog.Level

	runtimeAPI string // of Lambda: host and port
	taskRoot   string // folder of the package
	logStream  string // names the execution environment; "" if Lambda gave none
}

const (
	rulesDefault = "dynamill.yaml"

	// fanOutMaxMax is far above what one invocation has the time to write.
	fanOutMaxMax = 1_000_000
)

var logLevels = map[string]slog.Level{
	"": slog.LevelInfo, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

func readSettings(variable func(string) string) (settings, error) {
	s := settings{
		rules: cmp.Or(variable("DYNAMILL_RULES"), rulesDefault), table: variable("DYNAMILL_TABLE"), stateTable: variable("DYNAMILL_STATE_TABLE"),
		endpoint: variable("DYNAMILL_ENDPOINT"), runtimeAPI: variable("AWS_LAMBDA_RUNTIME_API"),
		taskRoot: variable("LAMBDA_TASK_ROOT"), logStream: variable("AWS_LAMBDA_LOG_STREAM_NAME"),
	}
	if s.taskRoot == "" {
		program, err := os.Executable()
		if err != nil {
			return s, fmt.Errorf("finding the folder of the package: %w", err)
		}
		s.taskRoot = filepath.Dir(program)
	}
	if text := variable("DYNAMILL_FAN_OUT_MAX"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > fanOutMaxMax {
			return s, fmt.Errorf("DYNAMILL_FAN_OUT_MAX %q is not a whole number from 1 to %d", text, fanOutMaxMax)
		}
		s.fanOutMax = n
	}
	switch text := variable("DYNAMILL_BESIDE_RUN"); text {
	case "", "false":
	case "true":
		s.besideRun = true
	default:
		return s, fmt.Errorf("DYNAMILL_BESIDE_RUN %q is neither true nor false", text)
	}
	level, known := logLevels[strings.ToLower(variable("DYNAMILL_LOG_LEVEL"))]
	if !known {
		return s, fmt.Errorf("DYNAMILL_LOG_LEVEL %q is not one of debug, info, warn, error", variable("DYNAMILL_LOG_LEVEL"))
	}
	s.logLevel = level
	return s, nil
}
