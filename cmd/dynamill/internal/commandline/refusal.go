package commandline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/ending"
	"github.com/dynamill/dynamill/internal/printable"
)

// NoArguments refuses arguments. A group of commands takes its argument for the name of a command, and says which is nearest.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	path := cmd.CommandPath()
	if cmd.HasAvailableSubCommands() {
		nearest := nearestCommand(cmd, args[0])
		if cmd.HasParent() && nearest == "" {
			return ending.Invalid("unknown command %q for `%s`: its commands are %s", args[0], path, strings.Join(namesBelow(cmd), ", "))
		}
		return ending.Invalid("unknown command %q for `%s`%s `%s --help` lists the commands", args[0], path, hinted(nearest), path)
	}
	hint := ""
	if flag := cmd.Flags().Lookup(strings.ToLower(args[0])); flag != nil {
		hint = "--" + flag.Name
	}
	return ending.Invalid("`%s` takes no argument %q%s `%s --help` shows how it is used", path, args[0], hinted(hint), path)
}

func namesBelow(group *cobra.Command) (names []string) {
	for _, cmd := range group.Commands() {
		if cmd.IsAvailableCommand() || cmd.Name() == "help" {
			names = append(names, cmd.Name())
		}
	}
	return names
}

// hinted asks whether the nearest name was meant, if there is one.
func hinted(nearest string) string {
	if nearest == "" {
		return ";"
	}
	return ": did you mean " + nearest + "?"
}

// Arguments refuses fewer or more arguments.
func Arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		return ending.Invalid("`%s` does not take %s: it is used as `%s`", cmd.CommandPath(), printable.Counted(len(args), "argument"),
			cmd.UseLine())
	}
}

// nearestCommand finds the command that a name which does not exist is likely meant to be: the nearest one of the group, or
// one of this name in another group; "" for none.
func nearestCommand(group *cobra.Command, name string) string {
	if best := nearest(name, namesBelow(group)); best != "" {
		return fmt.Sprintf("`%s %s`", group.CommandPath(), best)
	}
	for _, cmd := range Commands(group.Root()) {
		if cmd.Name() == name && cmd.Parent() != group && cmd.HasParent() {
			return "`" + cmd.CommandPath() + "`"
		}
	}
	return ""
}

// nearest is the candidate that a misspelled word is likely meant to be; "" if none is near.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", len(word)/3+2
	for _, candidate := range candidates {
		distance := levenshtein.Distance(strings.ToLower(word), candidate, nil)
		if len(word) > 1 && strings.HasPrefix(candidate, strings.ToLower(word)) {
			distance = 1
		}
		if distance < bestDistance && distance < len(candidate) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// Commands are a command and all below it, without hidden ones.
func Commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, Commands(sub)...)
		}
	}
	return all
}

// FlagError says of a flag that a command does not have which one is nearest, or which commands have it.
func FlagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(args) > 0 {
		return NoArguments(cmd, args) // the flag may be one of the command that was meant
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return RefusedLine(err)
	}
	name := unknown.GetSpecifiedName()
	if owners := ownersOf(cmd.Root(), name); len(owners) > 0 && len(name) > 1 {
		return ending.Invalid("`%s` has no flag --%s: it is a flag of %s; `%s --help` lists the flags", cmd.CommandPath(), name,
			strings.Join(owners, ", "), cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	hint := ""
	if best := nearest(name, names); best != "" && len(name) > 1 {
		hint = "--" + best
	}
	return ending.Invalid("%w%s `%s --help` lists the flags", err, hinted(hint), cmd.CommandPath())
}

func ownersOf(root *cobra.Command, flag string) (owners []string) {
	for _, cmd := range Commands(root)[1:] {
		if cmd.LocalNonPersistentFlags().Lookup(flag) != nil {
			owners = append(owners, "`"+cmd.CommandPath()+"`")
		}
	}
	slices.Sort(owners)
	return owners
}

// Offered are the names that begin as typed, and that a shell takes as they are.
func Offered(names []string, typed string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, typed) || strings.ContainsFunc(name, func(r rune) bool {
			return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("'\"`\\$", r)
		})
	})
}

// RefusedLine is the error of a command line that cannot be used.
func RefusedLine(err error) error {
	return ending.Invalid("%w; `dynamill --help` lists commands and flags", err)
}

// RefuseHelp makes --help behind arguments that the command does not take an error.
func RefuseHelp(root *cobra.Command, refused *error) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if given := cmd.Flags().Args(); len(given) > 0 {
			if *refused = cmd.ValidateArgs(given); *refused != nil {
				return
			}
		}
		help(cmd, args)
	})
}
