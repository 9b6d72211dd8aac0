package commandline

import (
	"strings"

	"github.com/spf13/cobra"
)

// Cost is what the help of a command says about its effects.
type Cost struct {
	Reads, Writes, Costs string
	Creates              string // "": nothing
}

// Offline is the cost of a command that sends no AWS request.
func Offline(reads, writes string) Cost {
	return Cost{Reads: reads, Writes: writes, Costs: "nothing; it sends no AWS request"}
}

const (
	costColumns = 110 // of a line of help
	CostIndent  = "    "
)

// Text is the block at the end of a command's description. Its indent makes it a
// block in man pages, too.
func (c Cost) Text() string {
	creates := c.Creates
	if creates == "" {
		creates = "nothing"
	}
	var b strings.Builder
	for _, line := range [][2]string{{"Reads:", c.Reads}, {"Writes:", c.Writes}, {"Creates:", creates}, {"Costs:", c.Costs}} {
		const label = 10 // columns
		indent := CostIndent + line[0] + strings.Repeat(" ", label-len(line[0]))
		column := 0
		for i, word := range strings.Fields(line[1]) {
			switch {
			case i == 0:
				b.WriteString(indent)
				column = len(indent)
			case column+1+len(word) > costColumns:
				b.WriteString("\n" + CostIndent + strings.Repeat(" ", label))
				column = len(CostIndent) + label
			default:
				b.WriteString(" ")
				column++
			}
			b.WriteString(word)
			column += len(word)
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// AddCosts puts what each command reads, writes and costs into its help.
func AddCosts(root *cobra.Command, costs map[string]Cost) {
	EachCommand(root, func(cmd *cobra.Command) {
		found, ok := costs[PathBehindRoot(cmd)]
		if !ok {
			return
		}
		if cmd.Long == "" {
			cmd.Long = cmd.Short + "."
		}
		cmd.Long += "\n\n" + found.Text()
	})
}

// PathBehindRoot is a command's path without the name of the program.
func PathBehindRoot(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
}
