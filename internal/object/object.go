// Package object reads one object of S3 whole. It imports no other room.
package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// Prefix begins the name of every object: s3://bucket/key.
const Prefix = "s3://"

// Client is what Read needs of the SDK's s3 client.
type Client interface {
	GetObject(ctx context.Context, in *s3.GetObjectInput, options ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

// Read reads the object that is named s3://bucket/key. One of more than bytesMax bytes is an error.
func Read(ctx context.Context, client Client, name string, bytesMax int64) (content []byte, err error) {
	path, prefixed := strings.CutPrefix(name, Prefix)
	bucket, key, _ := strings.Cut(path, "/")
	if !prefixed || bucket == "" || key == "" {
		return nil, fmt.Errorf("%q is not s3://bucket/key", name)
	}
	out, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, explained(err)
	}
	defer func() { err = errors.Join(err, out.Body.Close()) }()
	content, err = io.ReadAll(io.LimitReader(out.Body, bytesMax+1))
	if err == nil && int64(len(content)) > bytesMax {
		return nil, fmt.Errorf("it has more than %d bytes", bytesMax)
	}
	return content, err
}

// explained adds to S3's refusals what can be done about them.
func explained(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode() {
	case "NoSuchKey", "NoSuchBucket":
		return fmt.Errorf("there is no such object, or not any more: %w", err)
	case "AccessDenied":
		// S3 says so of missing objects, too, to a caller that may not list the bucket
		// (Amazon S3 API reference, "GetObject").
		return fmt.Errorf("either the function's role lacks s3:GetObject on it (or kms:Decrypt on its key), or there is no such object: %w", err)
	}
	return err
}
