// Package simserver serves a simulated DynamoDB over HTTP, in the AWS JSON 1.0
// protocol that the SDKs of all languages speak. Programs in processes of their
// own then share one dynamosim.Sim, and pay for their requests what the SDK costs.
//
// Every operation that the Sim has is served: an input is read into the SDK's
// type by its field names, and an output is written from it. Signatures are not
// checked. It is for tests and measurements only, on a loopback address.
package simserver
