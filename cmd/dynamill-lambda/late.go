package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/smithy-go"
)

// A batch that Lambda gave up may be larger than any payload by which somebody
// could invoke the function with it: 6 MB of records, and the report around them,
// against 6 MB for a synchronous invocation and 1 MB for an asynchronous one
// (Lambda API reference, "Invoke"). So it can be named instead:
//
//	{"dynamill":"late","object":"s3://bucket/key"}

const (
	lateCommand = "late"

	// lateRequestMax is far above any payload that names an object: a key has at
	// most 1,024 bytes (Amazon S3 user guide, "Naming Amazon S3 objects").
	lateRequestMax = 16 << 10

	// lateObjectMax leaves room for the 6 MB as a string with every quote escaped.
	lateObjectMax = 32 << 20
)

// lateRequest names the object of a batch that Lambda gave up.
type lateRequest struct {
	Command string `json:"dynamill"`
	Object  string `json:"object"`
}

// payload is what is to be worked off: the payload itself, or the object that it names.
func (f *function) payload(ctx context.Context, payload []byte) ([]byte, error) {
	if !asksForLate(payload) {
		return payload, nil
	}
	var asked lateRequest
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	err := d.Decode(&asked)
	if err == nil && !strings.HasPrefix(asked.Object, objectPrefix) {
		err = fmt.Errorf("the object is %q", asked.Object)
	}
	if err == nil {
		if _, trailing := d.Token(); !errors.Is(trailing, io.EOF) {
			err = errors.New("something follows its end")
		}
	}
	if err != nil {
		return nil, fmt.Errorf(`payload: want {"dynamill":"late","object":"s3://bucket/key"} and nothing else: %w`, err)
	}
	object, err := readObject(ctx, f.aws, strings.TrimPrefix(asked.Object, objectPrefix), lateObjectMax)
	if err != nil {
		return nil, fmt.Errorf("reading the late batch %s: %w", asked.Object, explained(err))
	}
	if err := checkLate(object); err != nil {
		return nil, fmt.Errorf("%s is no batch that an event source mapping gave up: %w", asked.Object, err)
	}
	return object, nil
}

// asksForLate reports whether a payload has the command late. Those with records
// are not decoded for that.
func asksForLate(payload []byte) bool {
	if len(payload) > lateRequestMax || !bytes.Contains(payload, []byte(`"`+lateCommand+`"`)) {
		return false
	}
	var asked struct {
		Command any `json:"dynamill"`
	}
	return json.Unmarshal(payload, &asked) == nil && asked.Command == lateCommand
}

// checkLate refuses whatever else a handler understands. Applied as if they came
// right from the stream, old records could undo later ones.
func checkLate(object []byte) error {
	var report struct {
		Info    *json.RawMessage `json:"DDBStreamBatchInfo"`
		Records *json.RawMessage `json:"Records"`
	}
	switch err := json.Unmarshal(object, &report); {
	case err != nil:
		return fmt.Errorf("it is no JSON object: %w", err)
	case report.Records != nil:
		return errors.New("it has Records of its own: it is an event")
	case report.Info == nil:
		return errors.New("it has no DDBStreamBatchInfo")
	}
	return nil
}

// explained adds to S3's refusals what can be done about them.
func explained(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode() {
	case "NoSuchKey", "NoSuchBucket":
		return fmt.Errorf("there is no such object, or it has expired: %w", err)
	case "AccessDenied":
		// S3 says so of missing objects, too, to whoever may not list the bucket
		// (Amazon S3 API reference, "GetObject").
		return fmt.Errorf("either the function's role lacks s3:GetObject on it (or kms:Decrypt on its key), or there is no such object: %w", err)
	}
	return err
}
