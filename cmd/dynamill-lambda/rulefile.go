package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/dynamill/dynamill/internal/object"
	"github.com/dynamill/dynamill/rules"
)

const parameterPrefix = "ssm:"

// ruleFileMax bounds what is read from S3: far above any rule file, far below the function's memory.
const ruleFileMax = 4 << 20

// loadRules reads and compiles the rules that DYNAMILL_RULES names: the text itself if it has a line break, an object in S3,
// a parameter of Systems Manager, or a file of the package.
func (s *settings) loadRules(ctx context.Context, cfg aws.Config) (*rules.Set, error) {
	var text []byte
	var err error
	from := s.rules
	switch parameter, isParameter := strings.CutPrefix(s.rules, parameterPrefix); {
	case strings.Contains(s.rules, "\n"):
		text, from = []byte(s.rules), "DYNAMILL_RULES"
	case strings.HasPrefix(s.rules, object.Prefix):
		text, err = object.Read(ctx, s3.NewFromConfig(cfg), s.rules, ruleFileMax)
	case isParameter:
		text, err = readParameter(ctx, cfg, parameter)
	default:
		text, err = s.readFile()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the rules that DYNAMILL_RULES names, %s: %w", from, err)
	}
	return rules.Load(from, text)
}

func (s *settings) readFile() ([]byte, error) {
	file := s.rules
	if !filepath.IsAbs(file) {
		file = filepath.Join(s.taskRoot, file)
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the package has no such file; make it with `make lambda RULES=FILE`, or set DYNAMILL_RULES: %w", err)
	}
	return text, err
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
