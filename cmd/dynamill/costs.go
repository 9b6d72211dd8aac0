package main

import "github.com/dynamill/dynamill/cmd/dynamill/internal/commandline"

// costs has the cost of each command, by its path behind "dynamill". A test compares
// the paths with the commands.
var costs = map[string]commandline.Cost{
	"": {
		Reads: "nothing by itself; each command says what it reads", Writes: "nothing by itself", Costs: "nothing by itself",
	},
	"version": commandline.Offline("nothing", "nothing"),
	"completion": commandline.Offline("nothing",
		"a script to standard output; the script calls dynamill, which sends ListTables where --table is completed"),
	"demo": commandline.Offline("nothing", "nothing; the example's tables are in memory"),
	"check": {
		Reads:  "the rule file; with --table also the description of the table and up to 1,000 of its items",
		Writes: "nothing", Costs: "without --table nothing, and it sends no AWS request; with --table at most 8,192 read units",
	},
	"explain":  commandline.Offline("the rule file and RECORD.json", "nothing"),
	"docs":     commandline.Offline("nothing", "nothing by itself; its commands write files"),
	"docs man": commandline.Offline("nothing", "one file for each command into DIR, over files of the same names"),

	"docs markdown": commandline.Offline("nothing", "one file for each command into DIR, over files of the same names"),

	"infra":                commandline.Offline("nothing", "nothing by itself; its commands write a template"),
	"infra sam":            templateCost,
	"infra cloudformation": templateCost,
	"infra terraform":      templateCost,
	"infra state-machine":  templateCost,

	"plan": {
		Reads: "the rule file, the description of the table, the registry rows of the state table, and the lease table; of a table that " +
			"dynamill never followed also up to 2,000 items",
		Writes: "nothing",
		Costs: "some DescribeTable requests, and read units for a few rows; for the items at most 4,096, and more for the rows and items " +
			"that they concern",
	},
	"run": {
		Reads:   "the rule file, the stream, the rows that the records concern; where rules are new, all items of the table once",
		Writes:  "the attributes and mirror items that the rules derive; its own rows in the state table and the lease table",
		Costs:   "for each change the write units that `dynamill check` lists by rule; read units for state rows and, with --archive, disk space",
		Creates: "the state table and the lease table where they are missing (on-demand capacity)",
	},
	"replay": {
		Reads: "the rule file; all items of the table and all rows of the state table, or what --from and --rule choose; export files and " +
			"archives",
		Writes:  "the attributes and mirror items that are not what the rules ask for; rows in the state table. With --dry-run: nothing",
		Costs:   "one read unit per 4 KB scanned (half with --eventually-consistent), read units for state rows, write units for what is changed",
		Creates: "the state table where it is missing",
	},
	"verify": {
		Reads:  "the rule file, all items of the table, all rows of the state table, the lease table and, for differences, the stream",
		Writes: "temporary files (--temp-dir). With --repair: the items and state rows that drifted",
		Costs: "one read unit per 4 KB of the table and of the state table, and more for each difference; with --sample just as much. With " +
			"--repair: write units for what it mends",
	},
	"status": {
		Reads: "the lease table, the state table, the stream behind the checkpoints and, if no process runs, Lambda's event source mappings; " +
			"the rule file if there is one",
		Writes: "nothing",
		Costs:  "read units for the leases, registry rows, tasks and parked records, and some GetRecords requests; again at every --watch",
	},
	"parked": {Reads: "nothing by itself; its commands read the state table", Writes: "nothing by itself", Costs: "nothing by itself"},
	"parked list": {
		Reads: "the parked records in the state table", Writes: "nothing",
		Costs: "some DescribeTable requests, and read units for the parked records",
	},
	"parked show": {
		Reads: "one parked record in the state table", Writes: "nothing", Costs: "some DescribeTable requests, and a few read units",
	},
	"parked retry": {
		Reads:  "the rule file, the parked records, and the item of each with its state rows",
		Writes: "what the rules derive from these items; removes the entries that are applied",
		Costs:  "read and write units for each entry as for one change (`dynamill check`)",
	},
	"parked discard": {
		Reads: "the rule file and the parked records", Writes: "removes the chosen entries from the state table; the table stays as it is",
		Costs: "some read units, and write units for each entry",
	},
}

var templateCost = commandline.Cost{
	Reads:  "the rule file (and that of --former-rules)",
	Writes: "the template, to standard output or to the file of --output",
	Costs:  "nothing; it sends no AWS request. The template's resources cost once you deploy them",
}
