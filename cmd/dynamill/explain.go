package main

import (
	"github.com/spf13/cobra"

	"github.com/dynamill/dynamill/cmd/dynamill/internal/explain"
)

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain RECORD.json",
		Short: "Says what one stream record would cause",
		Long: "Reads stream records from a file (- for standard input) and says for each which entity its item is, what\n" +
			"effects it has under each rule, and which writes dynamill would make. Nothing is read from or written to AWS.\n\n" +
			"The file may be a Lambda event, the answer of GetRecords, a list of records or a single record.",
		Example: "  dynamill explain record.json\n" +
			"  aws dynamodbstreams get-records --shard-iterator \"$ITERATOR\" | dynamill explain -",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return explain.Run(&a.out, &a.settings, args[0]) },
	}
}
