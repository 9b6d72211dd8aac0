package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// cost is what the help of a command says about its effects.
type cost struct {
	reads, writes, costs string
	creates              string // "": nothing
}

// offline is the cost of a command that sends no AWS request.
func offline(reads, writes string) cost {
	return cost{reads: reads, writes: writes, costs: "nothing; it sends no AWS request"}
}

const (
	costColumns = 110 // of a line of help
	costIndent  = "    "
)

// text is the block at the end of a command's description. Its indent makes it a
// block in man pages, too.
func (c cost) text() string {
	creates := c.creates
	if creates == "" {
		creates = "nothing"
	}
	var b strings.Builder
	for _, line := range [][2]string{{"Reads:", c.reads}, {"Writes:", c.writes}, {"Creates:", creates}, {"Costs:", c.costs}} {
		const label = 10 // columns
		indent := costIndent + line[0] + strings.Repeat(" ", label-len(line[0]))
		column := 0
		for i, word := range strings.Fields(line[1]) {
			switch {
			case i == 0:
				b.WriteString(indent)
				column = len(indent)
			case column+1+len(word) > costColumns:
				b.WriteString("\n" + costIndent + strings.Repeat(" ", label))
				column = len(costIndent) + label
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

// addCosts puts what each command reads, writes and costs into its help.
func addCosts(root *cobra.Command, costs map[string]cost) {
	eachCommand(root, func(cmd *cobra.Command) {
		found, ok := costs[pathBehindRoot(cmd)]
		if !ok {
			return
		}
		if cmd.Long == "" {
			cmd.Long = cmd.Short + "."
		}
		cmd.Long += "\n\n" + found.text()
	})
}

// pathBehindRoot is a command's path without the name of the program.
func pathBehindRoot(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
}
