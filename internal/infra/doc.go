// Package infra is the room of deployment: it makes, from a rule file, all that
// runs dynamill on AWS Lambda, as a template of AWS SAM, CloudFormation or
// Terraform. The function and its mapping on the table's stream, the mapping's
// filters (filter.go), permissions of just what the rules need (permissions.go),
// the state table, a place for batches that failed, a schedule, alarms and a
// dashboard. Nothing here talks to AWS: what it makes is text, the same for the
// same rules and options. The folder templates has a file for each language, and in
// permissions.yaml, alarms.yaml and fixed.yaml what all languages say, with text/template;
// render.go quotes and refers in these languages.
//
// A filter must never drop a record that matters, or promises 1 (converged) and
// 4 (self-healing) are lost where no engine can notice; filter_test.go holds it
// to that against random rules and records.
//
// It imports rules, and neither the engine, nor its drivers, nor an AWS client.
package infra
