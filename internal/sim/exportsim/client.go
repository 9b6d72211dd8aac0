package exportsim

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Client is S3 with one bucket, "exports". It lists two objects at a time. It is not safe for concurrent use.
type Client struct {
	Bucket
	CutAfter  int    // bytes that the next body gives before its connection breaks; 0: all
	Opened    int    // objects
	Forbidden string // the name of an object
	Refusal   error  // of the forbidden object
}

// GetObject opens an object.
func (c *Client) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	content, ok := c.Bucket[*in.Key]
	if !ok || *in.Bucket != "exports" {
		return nil, &s3types.NoSuchKey{}
	}
	if *in.Key == c.Forbidden {
		return nil, c.Refusal
	}
	c.Opened++
	if c.CutAfter == 0 {
		return &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(content))}, nil
	}
	body := io.MultiReader(bytes.NewReader(content[:min(c.CutAfter, len(content))]), brokenConnection{})
	c.CutAfter = 0
	return &s3.GetObjectOutput{Body: io.NopCloser(body)}, nil
}

type brokenConnection struct{}

func (brokenConnection) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// ListObjectsV2 lists objects by prefix.
func (c *Client) ListObjectsV2(_ context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output,
	error) {
	out := &s3.ListObjectsV2Output{IsTruncated: aws.Bool(false)}
	for _, name := range slices.Sorted(maps.Keys(c.Bucket)) {
		if !strings.HasPrefix(name, *in.Prefix) || name <= aws.ToString(in.ContinuationToken) {
			continue
		}
		if len(out.Contents) == 2 {
			out.IsTruncated, out.NextContinuationToken = aws.Bool(true), out.Contents[1].Key
			break
		}
		out.Contents = append(out.Contents, s3types.Object{Key: aws.String(name), Size: aws.Int64(int64(len(c.Bucket[name])))})
	}
	return out, nil
}
