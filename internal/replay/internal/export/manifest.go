// Package export reads DynamoDB's exports to S3, full and incremental ones, wherever they lie now, and checks sizes, counts
// and checksums (DynamoDB developer guide, "DynamoDB table export output format").
package export

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the checksums of exports are by it
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/dynamill/dynamill/internal/attributes"
	"github.com/dynamill/dynamill/internal/replay/objects"
)

const (
	summaryName  = "manifest-summary.json"
	filesName    = "manifest-files.json"
	dataFolder   = "data"
	formatJSON   = "DYNAMODB_JSON"
	manifestMax  = 64 << 20 // bytes; about 300,000 files
	listedMax    = 200_000  // objects looked at to find an export
	exportsNamed = 10       // of those that were found instead of one
	incremental  = "INCREMENTAL_EXPORT"
)

// checksumEndings are those of a manifest's checksum file: by the developer guide, and as DynamoDB writes them.
var checksumEndings = []string{".md5", ".checksum"}

// Export is an export whose manifests were read and whose files are there.
type Export struct {
	Files []File

	objects     objects.Objects
	folder      string // of the manifests
	id          string
	incremental bool
	wrong       Error
}

// File is a file of an export.
type File struct {
	Name  string // the last part of its name, unlike any other's
	Items int64  // lines

	object string
	md5    []byte
}

type summary struct {
	ExportARN          string `json:"exportArn"`
	TableARN           string `json:"tableArn"`
	ManifestFilesS3Key string `json:"manifestFilesS3Key"`
	ItemCount          *int64 `json:"itemCount"`
	OutputFormat       string `json:"outputFormat"`
	ExportType         string `json:"exportType"`
}

type manifestLine struct {
	ItemCount     *int64 `json:"itemCount"`
	MD5Checksum   string `json:"md5Checksum"`
	DataFileS3Key string `json:"dataFileS3Key"`
}

// Error lists everything that is wrong with an export.
type Error struct {
	Place    string
	Problems []string // "FILE: what is wrong", at least one
}

func (e *Error) add(file, format string, args ...any) {
	e.Problems = append(e.Problems, file+": "+fmt.Sprintf(format, args...))
}

func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return "export " + e.Place + ": " + e.Problems[0]
	}
	return fmt.Sprintf("export %s: %d problems:\n  %s", e.Place, len(e.Problems), strings.Join(e.Problems, "\n  "))
}

// Open reads the manifests of the export in a folder, in one above it, or of a manifest-summary.json.
func Open(ctx context.Context, in objects.Objects, name, table string) (*Export, error) {
	folder, err := find(ctx, in, name)
	if err != nil {
		return nil, err
	}
	e := &Export{objects: in, folder: folder, wrong: Error{Place: in.Place(folder)}}
	var s summary
	if text := e.manifest(ctx, summaryName); text != nil {
		if err := json.Unmarshal(text, &s); err != nil {
			e.wrong.add(summaryName, "it is no summary of an export: %v", err)
		}
	}
	if e.wrong.Problems != nil {
		return nil, &e.wrong
	}
	if err := e.checkSummary(s, table); err != nil {
		return nil, err
	}
	if text := e.manifest(ctx, filesName); text != nil {
		e.readFiles(text, s)
	}
	if err := e.locate(ctx); err != nil {
		return nil, err
	}
	if e.wrong.Problems != nil {
		return nil, &e.wrong
	}
	return e, nil
}

// find returns the folder of the export that a place means.
func find(ctx context.Context, in objects.Objects, name string) (string, error) {
	if path.Base(name) == summaryName {
		return folderOf(name), nil
	}
	content, err := in.Open(ctx, objects.Within(name)+summaryName)
	if err == nil {
		return name, content.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("looking for an export: %w", err)
	}
	var folders []string
	listed := 0
	err = in.List(ctx, objects.Within(name), func(object objects.Object) error {
		if listed++; listed > listedMax {
			return fmt.Errorf("%s holds more than %d objects: give the export's own folder", in.Place(name), listedMax)
		}
		if path.Base(object.Name) == summaryName {
			folders = append(folders, folderOf(object.Name))
		}
		return nil
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("looking for an export: %w", err)
	case len(folders) == 0:
		return "", fmt.Errorf("there is no export in %s: no %s lies there (an export that is not finished has none)", in.Place(name), summaryName)
	case len(folders) == 1:
		return folders[0], nil
	}
	var list strings.Builder
	for _, folder := range folders[:min(len(folders), exportsNamed)] {
		list.WriteString("\n  " + in.Place(folder))
	}
	return "", fmt.Errorf("%d exports lie in %s: give one of their folders%s", len(folders), in.Place(name), list.String())
}

// folderOf is the folder that an object lies in; "" at a bucket's root. Package path is
// not asked for it: a//b is another object than a/b, and some prefixes end with a slash.
func folderOf(name string) string {
	at := strings.LastIndexByte(name, '/')
	if at == 0 {
		return "/"
	}
	return name[:max(at, 0)]
}

// manifest reads a manifest and checks it against its checksum file; nil if either is wrong.
func (e *Export) manifest(ctx context.Context, name string) []byte {
	text, err := e.small(ctx, name)
	if err != nil {
		e.wrong.add(name, "%v", err)
		return nil
	}
	bare := strings.TrimSuffix(name, path.Ext(name))
	for _, ending := range checksumEndings {
		sidecar := bare + ending
		want, err := e.small(ctx, sidecar)
		if errors.Is(err, errMissing) {
			continue
		}
		got := md5.Sum(text) //nolint:gosec // see the import
		switch {
		case err != nil:
			e.wrong.add(sidecar, "%v", err)
		case base64.StdEncoding.EncodeToString(got[:]) != string(bytes.TrimSpace(want)):
			e.wrong.add(name, "its checksum is not that of %s: it is damaged", sidecar)
		default:
			return text
		}
		return nil
	}
	e.wrong.add(bare+checksumEndings[0], "%v", errMissing)
	return nil
}

var errMissing = errors.New("it is missing")

func (e *Export) small(ctx context.Context, name string) (text []byte, err error) {
	content, err := e.objects.Open(ctx, objects.Within(e.folder)+name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	text, err = io.ReadAll(io.LimitReader(content, manifestMax+1))
	if err == nil && len(text) > manifestMax {
		return nil, fmt.Errorf("it has more than %d MB", manifestMax>>20)
	}
	return text, err
}

// checkSummary refuses what is no export of the table in a format that is read here.
func (e *Export) checkSummary(s summary, table string) error {
	place := e.objects.Place(e.folder)
	exported := attributes.TableOf(s.TableARN)
	switch {
	case s.OutputFormat != formatJSON:
		return fmt.Errorf("export %s is in the format %q: only %s is read; export the table again with it", place, s.OutputFormat, formatJSON)
	case exported == "":
		e.wrong.add(summaryName, "its tableArn %q names no table", s.TableARN)
		return &e.wrong
	case s.ExportARN == "" || strings.HasSuffix(s.ExportARN, "/"):
		e.wrong.add(summaryName, "its exportArn is missing")
		return &e.wrong
	case exported != table:
		return fmt.Errorf("export %s is of another table: of %s, not of %q", place, s.TableARN, table)
	}
	e.incremental = s.ExportType == incremental
	e.id = path.Base(s.ExportARN)
	return nil
}

// readFiles reads the manifest of files: one JSON object per line.
func (e *Export) readFiles(text []byte, s summary) {
	var items int64
	good := true
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, manifestMax)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		file, err := fileOf(lines.Bytes())
		if err == nil && seen[file.Name] {
			err = fmt.Errorf("it names %s twice", file.Name)
		}
		if err != nil {
			e.wrong.add(filesName, "line %d: %v", number, err)
			good = false
			continue
		}
		seen[file.Name] = true
		items += file.Items
		e.Files = append(e.Files, file)
	}
	if err := lines.Err(); err != nil {
		e.wrong.add(filesName, "%v", err)
	}
	if good && s.ItemCount != nil && *s.ItemCount != items {
		e.wrong.add(filesName, "its files hold %d items together, but %s says %d", items, summaryName, *s.ItemCount)
	}
}

func fileOf(text []byte) (File, error) {
	var line manifestLine
	if err := json.Unmarshal(text, &line); err != nil {
		return File{}, fmt.Errorf("it is no JSON object that describes a file: %w", err)
	}
	sum, err := base64.StdEncoding.DecodeString(line.MD5Checksum)
	switch {
	case line.DataFileS3Key == "" || strings.HasSuffix(line.DataFileS3Key, "/"):
		return File{}, errors.New("it has no dataFileS3Key")
	case line.ItemCount == nil || *line.ItemCount < 0:
		return File{}, errors.New("it has no itemCount")
	case err != nil || len(sum) != md5.Size:
		return File{}, fmt.Errorf("its md5Checksum %.50q is none", line.MD5Checksum)
	}
	return File{Name: path.Base(line.DataFileS3Key), Items: *line.ItemCount, md5: sum}, nil
}

// Describe names the export as it is recognised again, also where its folder was given another name.
func (e *Export) Describe() string {
	text := "export "
	if e.incremental {
		text = "incremental export "
	}
	if path.Base(e.folder) != e.id {
		text += e.id + " in "
	}
	return text + e.objects.Place(e.folder)
}
