package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

const objectPrefix = "s3://"

// lateObjectMax leaves room for the 6 MB of a late batch as a string with every quote escaped.
const lateObjectMax = 32 << 20

// lateBatches reads late batches from where Lambda left them.
type lateBatches struct{ aws aws.Config }

func (l lateBatches) ReadObject(ctx context.Context, name string) ([]byte, error) {
	return readObject(ctx, l.aws, name, lateObjectMax)
}

// readObject reads an object of S3 that is named s3://bucket/key.
func readObject(ctx context.Context, cfg aws.Config, name string, bytesMax int64) (content []byte, err error) {
	path, prefixed := strings.CutPrefix(name, objectPrefix)
	bucket, key, _ := strings.Cut(path, "/")
	if !prefixed || bucket == "" || key == "" {
		return nil, fmt.Errorf("%q is not s3://bucket/key", name)
	}
	out, err := s3.NewFromConfig(cfg).GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
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
		// S3 says so of missing objects, too, to whoever may not list the bucket
		// (Amazon S3 API reference, "GetObject").
		return fmt.Errorf("either the function's role lacks s3:GetObject on it (or kms:Decrypt on its key), or there is no such object: %w", err)
	}
	return err
}
