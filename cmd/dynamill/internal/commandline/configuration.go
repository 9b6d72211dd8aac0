// Package commandline is what every command line has beside its command: refusals that name what was likely meant, values of
// flags from the environment and from a file, and the pages made of the help. It imports ending and internal/printable.
package commandline

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// How values of flags are given beside the command line.
const (
	ConfigurationFlag   = "config"    // names the file
	configurationPrefix = "DYNAMILL_" // of the environment variable of every flag
	configurationMax    = 1 << 20     // bytes of the file
)

// VariableOf names the environment variable of a flag.
func VariableOf(flag string) string {
	return configurationPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Configure sets each flag that the command line does not give: from its environment variable, otherwise from the
// configuration file. An empty variable counts as not set.
func Configure(cmd *cobra.Command, variable func(string) string) error {
	path := ""
	if flag := cmd.Flag(ConfigurationFlag); flag != nil {
		if path = flag.Value.String(); !flag.Changed {
			path = variable(VariableOf(ConfigurationFlag))
		}
	}
	file, err := readConfiguration(path, cmd.Root())
	if err != nil {
		return err
	}
	var problems []error
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || !Configurable(flag.Name) {
			return
		}
		values, where := file[flag.Name], fmt.Sprintf("%s: %s", path, flag.Name)
		if value := variable(VariableOf(flag.Name)); value != "" {
			values, where = []string{value}, VariableOf(flag.Name)
		}
		if _, list := flag.Value.(pflag.SliceValue); len(values) > 1 && !list {
			problems = append(problems, fmt.Errorf("%s: give one value: a list has no meaning here", where))
			return
		}
		for _, value := range values {
			if err := cmd.Flags().Set(flag.Name, value); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", where, err))
			}
		}
	})
	return errors.Join(problems...)
}

// Configurable reports whether a flag may be given beside the command line.
func Configurable(flag string) bool {
	return flag != ConfigurationFlag && flag != "help" && flag != "version"
}

// readConfiguration reads a configuration file; "" is none. A key that is a flag of no command is an error. One that is a flag
// of another command is not, so that one file serves them all.
func readConfiguration(path string, root *cobra.Command) (map[string][]string, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no configuration file %q: check --config or %s", path, VariableOf(ConfigurationFlag))
	case err == nil && info.Size() > configurationMax:
		return nil, fmt.Errorf("the configuration file %q is larger than %d MB", path, configurationMax>>20)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the configuration file cannot be read: %w", err)
	}
	var given map[string]any
	if err := yaml.Unmarshal(src, &given); err != nil {
		return nil, fmt.Errorf("the configuration file %s is no YAML of `flag: value` lines: %s", path, yaml.FormatError(err, false, true))
	}
	known := FlagsOf(root)
	file := make(map[string][]string, len(given))
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		values, ok := texts(given[key])
		switch {
		case !known[key]:
			problems = append(problems, fmt.Errorf("%s: %q is no flag that a file can give", path, key))
		case !ok:
			problems = append(problems, fmt.Errorf("%s: %s wants one value, or a list of values", path, key))
		}
		file[key] = values
	}
	return file, errors.Join(problems...)
}

// FlagsOf names the flags of all commands that a file can give.
func FlagsOf(root *cobra.Command) map[string]bool {
	known := map[string]bool{}
	note := func(flag *pflag.Flag) { known[flag.Name] = known[flag.Name] || Configurable(flag.Name) }
	for _, cmd := range Commands(root) {
		cmd.Flags().VisitAll(note)
		cmd.PersistentFlags().VisitAll(note)
	}
	return known
}

// texts are the values of a key as the command line would have them.
func texts(value any) ([]string, bool) {
	switch v := value.(type) {
	case nil, map[string]any:
		return nil, false
	case []any:
		var all []string
		for _, one := range v {
			text, ok := texts(one)
			if !ok || len(text) != 1 {
				return nil, false
			}
			all = append(all, text[0])
		}
		return all, len(all) > 0
	}
	return []string{fmt.Sprint(value)}, true
}
