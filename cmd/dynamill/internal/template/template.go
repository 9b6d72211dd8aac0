// Package template writes the templates of package infra to a file or to standard output. It sends no request.
// It imports output, settings and infra.
package template

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/output"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/settings"
	"github.com/dynamill/dynamill/internal/infra"
	"github.com/dynamill/dynamill/internal/rules"
)

// Options are the flags of `infra`.
type Options struct {
	infra.Options
	RulesFrom string
	Former    string
	Output    string
}

// Values of --rules-from that name no place of their own.
const (
	RulesInZip  = "zip"
	RulesInline = "inline"
)

// Write writes the template that deploys the rules.
func Write(out *output.Output, s *settings.Settings, format infra.Format, flags Options) error {
	set, table, err := s.LoadForTable()
	if err != nil {
		return err
	}
	switch folded := set.FoldedText(); {
	case folded != "" && !flags.BesideRun:
		return ending.Invalid("rule %s counts by stream position, which no function can: Lambda does not tell of which shard a record is; add "+
			"--beside-run, and let `dynamill run --beside-function` keep such rules, or write them without that key", folded)
	case folded == "" && flags.BesideRun:
		return ending.Invalid("--beside-run has no meaning: a function can keep all of these rules; leave it out")
	}
	o := flags.Options
	o.Table, o.StateTable, o.RulesFile = table, s.StateTable, filepath.Base(s.Rules)
	if s.Rules == settings.StandardInput {
		o.RulesFile = settings.RuleFileDefault
	}
	if o.RulesFrom, err = rulesFrom(flags.RulesFrom, set); err != nil {
		return err
	}
	if flags.Former != "" {
		if o.Former, err = s.LoadFormer("--former-rules", flags.Former); err != nil {
			return err
		}
	}
	if format == infra.CloudFormation && o.Code != "" {
		return ending.Invalid("--code has no meaning for cloudformation: its template has parameters for where the zip is, CodeBucket and " +
			"CodeKey")
	}
	if o.ReplayExports != "" && !o.Replay {
		return ending.Invalid("--replay-exports has no meaning without --replay")
	}
	if zero := flags.zero(); len(zero) > 0 {
		return ending.Invalid("%s cannot be 0", strings.Join(zero, " and "))
	}
	template, err := infra.Generate(format, set, o)
	if err != nil {
		return ending.Invalid("%w", err)
	}
	return writeOut(out, flags.Output, template)
}

// WriteStateMachine writes the definition of a replay's state machine alone.
func WriteStateMachine(out *output.Output, s *settings.Settings, flags Options) (err error) {
	if _, flags.Table, err = s.LoadForTable(); err != nil {
		return err
	}
	if flags.ReplayConcurrency == 0 {
		return ending.Invalid("--replay-concurrency cannot be 0")
	}
	definition, err := infra.Definition(flags.Options)
	if err != nil {
		return ending.Invalid("%w", err)
	}
	return writeOut(out, flags.Output, definition)
}

// writeOut writes to a file, or to standard output if none is named.
func writeOut(out *output.Output, file string, text []byte) error {
	switch {
	case file != "":
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return fmt.Errorf("writing the template: %w", err)
		}
	case progress.IsTerminal(out.Stdout):
		out.PrintText(string(text))
	default:
		out.PrintData(string(text))
	}
	return nil
}

// zero names the flags that are 0, which the library takes for their defaults.
func (o *Options) zero() (names []string) {
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
	case flag == RulesInZip:
		return "", nil
	case flag == RulesInline:
		return strings.TrimRight(set.Text(), "\n") + "\n", nil // by its line break the function knows it from a name
	case strings.HasPrefix(flag, "s3://"), strings.HasPrefix(flag, "ssm:"):
		if !strings.ContainsFunc(flag, unicode.IsControl) {
			return flag, nil
		}
	}
	return "", ending.Invalid("--rules-from %q is none of zip, inline, s3://BUCKET/KEY and ssm:NAME", flag)
}
