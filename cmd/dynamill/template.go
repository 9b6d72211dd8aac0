package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/infra"
	"github.com/dynamill/dynamill/rules"
)

// templateOptions are the flags of `infra`.
type templateOptions struct {
	infra.Options
	rulesFrom string
	former    string
	output    string
}

// Values of --rules-from that name no place of their own.
const (
	rulesInZip  = "zip"
	rulesInline = "inline"
)

// writeTemplate writes the template that deploys the rules.
func writeTemplate(out *output, s *settings, format infra.Format, flags templateOptions) error {
	set, table, err := s.loadForTable()
	if err != nil {
		return err
	}
	o := flags.Options
	o.Table, o.StateTable, o.RulesFile = table, s.stateTable, filepath.Base(s.rules)
	if s.rules == standardInput {
		o.RulesFile = ruleFileDefault
	}
	if o.RulesFrom, err = rulesFrom(flags.rulesFrom, set); err != nil {
		return err
	}
	if flags.former != "" {
		if o.Former, err = s.loadFormer("--former-rules", flags.former); err != nil {
			return err
		}
	}
	if format == infra.CloudFormation && o.Code != "" {
		return invalid("--code has no meaning for cloudformation: its template has parameters for where the zip is, CodeBucket and CodeKey")
	}
	if o.ReplayExports != "" && !o.Replay {
		return invalid("--replay-exports has no meaning without --replay")
	}
	if zero := flags.zero(); len(zero) > 0 {
		return invalid("%s cannot be 0", strings.Join(zero, " and "))
	}
	template, err := infra.Generate(format, set, o)
	if err != nil {
		return invalid("%w", err)
	}
	return writeOut(out, flags.output, template)
}

// writeStateMachine writes the definition of a replay's state machine alone.
func writeStateMachine(out *output, s *settings, flags templateOptions) (err error) {
	if _, flags.Table, err = s.loadForTable(); err != nil {
		return err
	}
	if flags.ReplayConcurrency == 0 {
		return invalid("--replay-concurrency cannot be 0")
	}
	definition, err := infra.Definition(flags.Options)
	if err != nil {
		return invalid("%w", err)
	}
	return writeOut(out, flags.output, definition)
}

// writeOut writes to a file, or to standard output if none is named.
func writeOut(out *output, file string, text []byte) error {
	switch {
	case file != "":
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return fmt.Errorf("writing the template: %w", err)
		}
	case progress.IsTerminal(out.stdout):
		out.printText(string(text))
	default:
		out.printData(string(text))
	}
	return nil
}

// zero names the flags that are 0, which the library takes for their defaults.
func (o *templateOptions) zero() (names []string) {
	for _, flag := range []struct {
		name string
		zero bool
	}{
		{"--memory-size", o.MemoryMB == 0}, {"--timeout", o.Timeout == 0}, {"--batch-size", o.BatchSize == 0},
		{"--parallelization", o.Parallelization == 0}, {"--retention", o.RetentionDays == 0}, {"--replay-concurrency", o.ReplayConcurrency == 0},
	} {
		if flag.zero {
			names = append(names, flag.name)
		}
	}
	return names
}

// rulesFrom says to the library what --rules-from means.
func rulesFrom(flag string, set *rules.Set) (string, error) {
	switch {
	case flag == rulesInZip:
		return "", nil
	case flag == rulesInline:
		return strings.TrimRight(set.Text(), "\n") + "\n", nil // by its line break the function knows it from a name
	case strings.HasPrefix(flag, "s3://"), strings.HasPrefix(flag, "ssm:"):
		if !strings.ContainsFunc(flag, unicode.IsControl) {
			return flag, nil
		}
	}
	return "", invalid("--rules-from %q is none of zip, inline, s3://BUCKET/KEY and ssm:NAME", flag)
}
