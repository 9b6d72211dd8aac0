package commandline

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// PageForm is one form of the pages that `docs` writes.
type PageForm struct {
	Name, Kind, ending string
	separator          string // of the commands in a file's name, as cobra has it in links and in SEE ALSO
	write              func(*cobra.Command, *bytes.Buffer) error
}

// The forms that there are.
var (
	ManPages      = PageForm{"man", "man", ".1", "-", manPage}
	MarkdownPages = PageForm{"markdown", "Markdown", ".md", "_",
		func(cmd *cobra.Command, page *bytes.Buffer) error { return doc.GenMarkdown(cmd, page) }}
)

// WriteAll writes the pages of a command and all below it. The page of the first one ends with more text.
func (f PageForm) WriteAll(root *cobra.Command, dir, more string) (written int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("making the folder of the pages: %w", err)
	}
	root.Long += "\n\n" + indented(strings.TrimSpace(more))
	for _, cmd := range Commands(root) {
		var page bytes.Buffer
		cmd.DisableAutoGenTag = true // it would carry the date
		if err = f.write(cmd, &page); err == nil {
			name := strings.ReplaceAll(cmd.CommandPath(), " ", f.separator) + f.ending
			err = os.WriteFile(filepath.Join(dir, name), page.Bytes(), 0o644)
		}
		if err != nil {
			return written, fmt.Errorf("writing the pages: %w", err)
		}
		written++
	}
	return written, nil
}

// noDate marks a page without a date. manPage takes it out of the page, because cobra writes today's date for none.
var noDate = time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)

func manPage(cmd *cobra.Command, page *bytes.Buffer) error {
	date := noDate
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds", epoch)
		}
		date = time.Unix(seconds, 0).UTC()
	}
	var raw bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Source: "dynamill", Manual: "dynamill", Date: &date}
	if err := doc.GenMan(cmd, header, &raw); err != nil {
		return err
	}
	page.Write(bytes.Replace(raw.Bytes(), []byte(noDate.Format("Jan 2006")), nil, 1))
	return nil
}

// indented is a text as a block of Markdown.
func indented(text string) string {
	const indent = "    "
	return indent + strings.ReplaceAll(text, "\n", "\n"+indent)
}
