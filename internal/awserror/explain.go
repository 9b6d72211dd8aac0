package awserror

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Explained is an error of AWS in plain words, with the raw text last.
type Explained struct {
	Kind Kind
	text string
	raw  error
}

func (e *Explained) Error() string { return e.text + " (" + e.raw.Error() + ")" }

// Unwrap returns the error of the SDK.
func (e *Explained) Unwrap() error { return e.raw }

// StopReading reports whether no retry can succeed, so that the stream reader stops.
func (e *Explained) StopReading() bool { return e.Kind.Lasting() }

// Explain turns an error that holds one of AWS, or of the way there, into plain words, behind those of the callers that wrap it.
// It returns nil for any other, and for a call that the caller itself canceled.
func Explain(err error, place Place) *Explained {
	if told, ok := errors.AsType[*Explained](err); ok {
		return told
	}
	switch api, refused := errors.AsType[smithy.APIError](err); {
	case refused:
		return callOf(err, place).refused(err, api)
	case err == nil, errors.Is(err, context.Canceled):
		return nil
	}
	return callOf(err, place).unanswered(err)
}

type call struct {
	service, operation, subject string
	place                       Place
	raw                         error // of the SDK; nil where it is not known
}

func callOf(err error, place Place) call {
	c := call{subject: tables([]string{place.Table}), place: place}
	if operation, ok := errors.AsType[*smithy.OperationError](err); ok {
		c.service, c.operation, c.raw = operation.ServiceID, operation.OperationName, operation
	}
	if noted, ok := errors.AsType[*callError](err); ok {
		c.subject, c.place = cmp.Or(noted.subject, c.subject), noted.place
	}
	return c
}

// refused explains an answer of AWS that says no; nil for codes that are not known.
func (c call) refused(err error, api smithy.APIError) *Explained {
	switch found := refusalOf(api.ErrorCode(), c.service); {
	case found != nil:
		return c.explained(err, api, found.kind, found.cause, found.remedy)
	case statusOf(err) >= http.StatusInternalServerError:
		return c.trouble(err, api)
	case api.ErrorCode() == codeUnknown:
		return c.explained(err, api, Foreign, "{where} did not answer as "+c.serviceName()+" does", c.remedyOfPlace())
	}
	return nil
}

// trouble explains an answer whose HTTP status tells of a fault of the server.
func (c call) trouble(err, inner error) *Explained {
	cause := fmt.Sprintf("{where} answered {action} on {subject} with HTTP status %d", statusOf(err))
	return c.explained(err, inner, Trouble, cause, "start again")
}

// statusOf is the HTTP status of an answer; 0 if there is none.
func statusOf(err error) int {
	answer, answered := errors.AsType[*smithyhttp.ResponseError](err)
	if !answered {
		return 0
	}
	return answer.HTTPStatusCode()
}

// unanswered explains a request without an answer, or with one that is not of AWS.
func (c call) unanswered(err error) *Explained {
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return c.explained(err, err, Unreachable, c.serverName()+" shows a certificate that is not trusted",
			"check the address, or name the certificate of its authority with AWS_CA_BUNDLE")
	case errors.Is(err, http.ErrSchemeMismatch):
		return c.explained(err, err, Unreachable, c.serverName()+" does not speak TLS",
			"check --endpoint: it may need http:// instead of https://")
	case c.raw != nil && errors.Is(err, context.DeadlineExceeded):
		return c.explained(err, err, Unreachable, c.serverName()+" did not answer {action} on {subject} in time", c.remedyOfPlace())
	case errors.As(err, new(*net.DNSError)), errors.As(err, new(*net.OpError)), errors.As(err, new(*smithyhttp.RequestSendError)):
		return c.explained(err, err, Unreachable, c.serverName()+" cannot be reached", c.remedyOfPlace())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return c.explained(err, err, Unreachable, c.serverName()+" broke off its answer to {action} on {subject}", "start again")
	case statusOf(err) >= http.StatusInternalServerError:
		return c.trouble(err, err)
	case errors.As(err, new(*smithy.DeserializationError)):
		return c.explained(err, err, Foreign, "{where} did not answer as "+c.serviceName()+" does", c.remedyOfPlace())
	}
	return nil
}

// explained composes the sentence, within the words with which callers wrapped the error of the SDK.
func (c call) explained(err, inner error, kind Kind, cause, remedy string) *Explained {
	if c.raw != nil {
		inner = c.raw
	}
	before, after, found := strings.Cut(err.Error(), inner.Error())
	if !found {
		before, after = "", ""
	}
	before = before[strings.LastIndexByte(before, '\n')+1:]
	after, _, _ = strings.Cut(after, "\n")
	words := strings.NewReplacer("{action}", c.action(), "{subject}", c.subject, "{where}", c.place.Where)
	return &Explained{Kind: kind, text: before + words.Replace(cause+": "+remedy) + after, raw: inner}
}

// services maps the SDK's name of a service other than DynamoDB to the prefix of its IAM actions. Lambda's name is
// a literal, so that its package need not be imported.
var services = map[string]string{s3.ServiceID: "s3:", "Lambda": "lambda:"}

// action names the IAM action of the call, such as dynamodb:GetRecords.
func (c call) action() string {
	switch {
	case c.operation == "":
		return c.serviceName()
	case c.service == s3.ServiceID && c.operation == "ListObjectsV2":
		return "s3:ListBucket"
	case c.operation == "TransactWriteItems":
		// IAM knows no action of this name: each member needs its own, and AWS's message names the one that is missing.
		return "dynamodb:PutItem, UpdateItem, DeleteItem or ConditionCheckItem"
	}
	return cmp.Or(services[c.service], "dynamodb:") + c.operation
}

func (c call) serviceName() string {
	if _, other := services[c.service]; other {
		return c.service
	}
	return "DynamoDB"
}

// serverName names the server for people: the endpoint if one was given.
func (c call) serverName() string {
	if c.place.Endpoint != "" && c.service != s3.ServiceID {
		return c.place.Endpoint
	}
	return c.serviceName() + " in " + c.place.Region
}

func (c call) remedyOfPlace() string {
	if c.place.Endpoint != "" && c.service != s3.ServiceID {
		return "check --endpoint, and that a server is listening there"
	}
	return "check the network and --region"
}
