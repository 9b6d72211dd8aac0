package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/preview"
)

func (a *app) planCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "Says what a rule file would change in the table",
		Long: "Compares the rule file with the rules in force in the table, and says of each rule whether it is unchanged, renamed,\n" +
			"added, changed or removed, and what `dynamill replay` would do to carry that out: what it reads, which attributes it\n" +
			"moves or takes off, and which mirror items it deletes. Of a table on which nothing has run it says what seeding reads\n" +
			"and writes, projected from up to 2,000 items. It names a deleted state table or lease table. It writes nothing.",
		Example: "  dynamill plan --table app\n  dynamill plan --rules new.yaml --table app --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return preview.ShowPlan(cmd.Context(), &a.out, &a.settings)
		},
	}
}
