package replaying

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/preview"
	"github.com/dynamill/dynamill/cmd/dynamill/internal/progress"
	"github.com/dynamill/dynamill/internal/projections"
)

// compare compares the rule file with the rules in force, and refuses a replay that cannot bring into force what is not.
func (r *replayer) compare(ctx context.Context) (*projections.Comparison, error) {
	found, err := preview.CompareRules(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	if changed := changedOf(found); changed != nil && !r.options.whole() {
		return nil, ending.Invalid("%w (a whole one: leave out --rule and --from)", changed)
	}
	var pending []string // rules that are not in force yet, or are not taken back
	for _, rule := range found.Rules {
		if !rule.Live {
			pending = append(pending, rule.Name)
		}
	}
	return found, r.refusePending(pending)
}

// refusePending refuses a replay that leaves rules as they are: those that are not in force.
func (r *replayer) refusePending(rules []string) error {
	switch {
	case len(rules) == 0:
		return nil
	case len(r.options.Rules) > 0:
		return ending.Invalid("rules are brought into force together, and not in force yet are %s: run `dynamill replay` without --rule first",
			strings.Join(rules, ", "))
	case r.options.EventuallyConsistent:
		return ending.Invalid("rules are brought into force by a consistent scan only, and not in force yet are %s: leave out "+
			"--eventually-consistent", strings.Join(rules, ", "))
	}
	return nil
}

// changedOf names what the rule file changes or removes of the rules in force; nil if nothing.
func changedOf(found *projections.Comparison) *projections.RulesChangedError {
	changed := &projections.RulesChangedError{StateTable: found.StateTable}
	for _, rule := range found.Rules {
		if rule.What == projections.RuleChanged {
			changed.Changed = append(changed.Changed, rule.Name)
		}
		if rule.What == projections.RuleRemoved {
			changed.Removed = append(changed.Removed, rule.Name)
		}
	}
	if len(changed.Changed)+len(changed.Removed) == 0 {
		return nil
	}
	return changed
}

// open opens the engine. A replay of the whole table registers the rules, and changes those that the user agreed to change.
func (r *replayer) open(ctx context.Context, agreedEpoch int) (*projections.Engine, error) {
	cfg := r.EngineConfig(r.options.Budget)
	open := projections.OpenAttached
	if r.options.whole() { // the only replay that would make a state table
		table, err := r.Env.Describe(ctx)
		if err != nil {
			return nil, err
		}
		if err := r.Env.RefuseLostState(ctx, aws.ToString(table.LatestStreamArn)); err != nil {
			return nil, err
		}
		open = func(ctx context.Context, cfg projections.Config) (*projections.Engine, error) {
			return projections.OpenChanging(ctx, cfg, agreedEpoch)
		}
	}
	engine, err := open(ctx, cfg)
	if err != nil {
		return nil, r.Env.Classify(fmt.Errorf("starting on table %q: %w", r.Table, err))
	}
	return engine, nil
}

// agree says what changed rules mean for the table, if there are any, and has the user agree to it. It returns the epoch of
// the rules that may change, 0 if none do.
func (r *replayer) agree(ctx context.Context, found *projections.Comparison) (epoch int, err error) {
	changed := changedOf(found)
	if changed == nil {
		return 0, nil
	}
	fmt.Fprint(r.Screen, preview.NewPlan(found, r.Set, r.counts.Items, r.counts.Bytes).Text())
	if r.options.Yes {
		return found.Epoch, nil
	}
	in, ok := r.Settings.Stdin.(io.Writer) // a file is both
	if !ok || !progress.IsTerminal(in) || !r.Screen.Terminal() {
		return 0, ending.Invalid("%w; with --yes it is carried out without asking", changed)
	}
	fmt.Fprint(r.Screen, "carry this out? [y/N] ")
	answer, _ := bufio.NewReader(stoppable(ctx, r.Settings.Stdin)).ReadString('\n')
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if text := strings.ToLower(strings.TrimSpace(answer)); text == "y" || text == "yes" {
		return found.Epoch, nil
	}
	return 0, ending.Invalid("nothing was changed: `dynamill plan` says more about what the rule file would change")
}

// bringing names the rules that are not in force yet, and those that are taken back.
func (r *replayer) bringing() []string {
	d := r.engine.Describe()
	names := slices.Clone(d.NewRules)
	for _, former := range d.FormerRules {
		if i := slices.Index(names, former); i >= 0 {
			names[i] = former + " (changed)"
		} else {
			names = append(names, former+" (taken back)")
		}
	}
	return names
}
