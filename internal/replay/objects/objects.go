// Package objects reads files in a folder or in a bucket of S3. It imports no other room.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// Objects are files with names that are parted by slashes.
type Objects interface {
	// Open opens an object for reading once. The error is an fs.ErrNotExist where there is none.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// List calls found for each object whose name begins with prefix, until it returns an error, which List returns.
	List(ctx context.Context, prefix string, found func(Object) error) error
	// Place is what people call an object or a prefix: s3://bucket/name, or a path.
	Place(name string) string
}

// Object is one file.
type Object struct {
	Name string
	Size int64 // bytes
}

// Within is the prefix of the names of what lies in a folder; "" is a bucket's root.
func Within(folder string) string {
	if folder == "" {
		return ""
	}
	return strings.TrimSuffix(folder, "/") + "/"
}

// Folder gives the files of this machine. Their names are absolute paths.
type Folder struct{}

// Open opens a file.
func (Folder) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.FromSlash(name))
}

// Place returns the path.
func (Folder) Place(name string) string { return filepath.FromSlash(name) }

// List walks the folder that the prefix is, or begins in.
func (Folder) List(ctx context.Context, prefix string, found func(Object) error) error {
	root := prefix[:strings.LastIndexByte(prefix, '/')+1]
	err := filepath.WalkDir(filepath.FromSlash(root), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(path)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if entry.IsDir() || !strings.HasPrefix(name, prefix) {
			return nil
		}
		info, err := os.Stat(path) // of what a symbolic link leads to
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		return found(Object{name, info.Size()})
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // as in a bucket, where nothing but objects exists
	}
	return err
}

// S3Client is what a Bucket needs of the SDK's s3 client.
type S3Client interface {
	GetObject(ctx context.Context, in *s3.GetObjectInput, options ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, options ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

var _ S3Client = (*s3.Client)(nil)

// Bucket gives the objects of a bucket of S3.
type Bucket struct {
	Client S3Client
	Name   string
}

// Open gets an object.
func (b Bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	out, err := b.Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.Name, Key: &name})
	if err != nil {
		return nil, b.explained(err, name,
			"s3:GetObject on it, kms:Decrypt on its key, or, where there is no such object, s3:ListBucket on the bucket")
	}
	return delivery{out.Body}, nil
}

// delivery is an object on its way here.
type delivery struct{ io.ReadCloser }

func (d delivery) Read(into []byte) (int, error) {
	n, err := d.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &brokenError{err}
	}
	return n, err
}

// brokenError says that a connection broke while an object came. No client of S3 retries that.
type brokenError struct{ reason error }

func (e *brokenError) Error() string { return "the connection broke: " + e.reason.Error() }
func (e *brokenError) Unwrap() error { return e.reason }

// ConnectionError tells the AWS SDK's classifier that trying again may help.
func (*brokenError) ConnectionError() bool { return true }

// Place returns the object's URI.
func (b Bucket) Place(name string) string { return s3Scheme + b.Name + "/" + name }

// List lists the bucket's objects, a thousand at a time.
func (b Bucket) List(ctx context.Context, prefix string, found func(Object) error) error {
	pages := s3.NewListObjectsV2Paginator(b.Client, &s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return b.explained(err, prefix, "s3:ListBucket on the bucket")
		}
		for _, object := range page.Contents {
			if err := found(Object{aws.ToString(object.Key), aws.ToInt64(object.Size)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// PermissionError says which permissions the credentials lack for an object.
type PermissionError struct {
	Place, Permissions string
	Err                error // of S3
}

func (e *PermissionError) Error() string {
	return fmt.Sprintf("%s: the credentials lack %s: allow that in their IAM policy and in the policy of the bucket (%v)", e.Place,
		e.Permissions, e.Err)
}

// Unwrap returns the error of S3.
func (e *PermissionError) Unwrap() error { return e.Err }

// explained says what can be done about a refusal, and makes a missing object an fs.ErrNotExist.
func (b Bucket) explained(err error, name, permissions string) error {
	if _, missing := errors.AsType[*types.NoSuchKey](err); missing {
		err = fs.ErrNotExist
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == "AccessDenied" {
		return &PermissionError{b.Place(name), permissions, err}
	}
	return fmt.Errorf("%s: %w", b.Place(name), err)
}

const s3Scheme = "s3://"

// At returns the objects that a place is among, and its name there: of
// "s3://bucket/prefix" or the path of a folder or file. The client may be nil where the place is a path.
func At(place string, client S3Client) (Objects, string, error) {
	if rest, ok := strings.CutPrefix(place, s3Scheme); ok {
		bucket, name, _ := strings.Cut(rest, "/")
		if bucket == "" {
			return nil, "", fmt.Errorf("%q is not s3://bucket/prefix", place)
		}
		if client == nil {
			return nil, "", fmt.Errorf("%s: there is no client of S3", place)
		}
		return Bucket{client, bucket}, strings.Trim(name, "/"), nil
	}
	if place == "" {
		return nil, "", errors.New("the place is empty: want s3://bucket/prefix or a folder")
	}
	path, err := filepath.Abs(place)
	return Folder{}, filepath.ToSlash(path), err
}

// OnS3 reports whether At needs a client for a place.
func OnS3(place string) bool { return strings.HasPrefix(place, s3Scheme) }
