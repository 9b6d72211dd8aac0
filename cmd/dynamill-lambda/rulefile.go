package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/dynamill/dynamill/rules"
)

const (
	parameterPrefix = "ssm:"
	objectPrefix    = "s3://"
)

// loadRules reads and compiles the rules that DYNAMILL_RULES names: the text
// itself if it has a line break, an object in S3, a parameter of Systems Manager,
// or a file of the package.
func (s *settings) loadRules(ctx context.Context, cfg aws.Config) (*rules.Set, error) {
	switch {
	case strings.Contains(s.rules, "\n"):
		return rules.Load("DYNAMILL_RULES", []byte(s.rules))
	case strings.HasPrefix(s.rules, objectPrefix):
		return loadFrom(ctx, cfg, s.rules, objectPrefix, readRuleObject)
	case strings.HasPrefix(s.rules, parameterPrefix):
		return loadFrom(ctx, cfg, s.rules, parameterPrefix, readParameter)
	}
	file := s.rules
	if !filepath.IsAbs(file) {
		file = filepath.Join(s.taskRoot, file)
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the rule file (DYNAMILL_RULES names a file of the package, %s by default): %w", rulesDefault, err)
	}
	return rules.Load(s.rules, src)
}

func loadFrom(ctx context.Context, cfg aws.Config, from, prefix string,
	read func(context.Context, aws.Config, string) ([]byte, error),
) (*rules.Set, error) {
	src, err := read(ctx, cfg, strings.TrimPrefix(from, prefix))
	if err != nil {
		return nil, fmt.Errorf("reading DYNAMILL_RULES %s: %w", from, err)
	}
	return rules.Load(from, src)
}

func readParameter(ctx context.Context, cfg aws.Config, name string) ([]byte, error) {
	out, err := ssm.NewFromConfig(cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: &name, WithDecryption: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	if out.Parameter == nil {
		return nil, errors.New("the answer holds no parameter")
	}
	return []byte(aws.ToString(out.Parameter.Value)), nil
}

// ruleFileMax bounds what is read from S3: far above any rule file, far below the function's memory.
const ruleFileMax = 4 << 20

func readRuleObject(ctx context.Context, cfg aws.Config, name string) ([]byte, error) {
	return readObject(ctx, cfg, name, ruleFileMax)
}

// readObject reads an object of S3, named bucket/key.
func readObject(ctx context.Context, cfg aws.Config, name string, bytesMax int64) (src []byte, err error) {
	bucket, key, _ := strings.Cut(name, "/")
	if bucket == "" || key == "" {
		return nil, errors.New("want s3://bucket/key")
	}
	out, err := s3.NewFromConfig(cfg).GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Body.Close()) }()
	src, err = io.ReadAll(io.LimitReader(out.Body, bytesMax+1))
	if err == nil && int64(len(src)) > bytesMax {
		return nil, fmt.Errorf("it has more than %d bytes", bytesMax)
	}
	return src, err
}
