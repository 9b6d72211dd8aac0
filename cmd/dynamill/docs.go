package main

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

// docsForm is one form of the pages that `docs` writes.
type docsForm struct {
	name, short, ending string
	write               func(*cobra.Command, *bytes.Buffer) error
}

func (a *app) docsCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "docs",
		Short:   "Writes man pages or Markdown of all commands",
		Example: "  dynamill docs man ~/.local/share/man/man1",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, form := range []docsForm{
		{"man", "Writes a man page for each command", ".1", manPage},
		{"markdown", "Writes a Markdown page for each command", ".md", markdownPage},
	} {
		command.AddCommand(&cobra.Command{
			Use:   form.name + " DIR",
			Short: form.short,
			Long: form.short + " into a folder, and makes the folder if it is missing. The same build writes the same files:\n" +
				"a page has a date only if SOURCE_DATE_EPOCH gives one.",
			Example: "  dynamill docs " + form.name + " ./pages",
			Args:    cobra.ExactArgs(1),
			RunE:    func(cmd *cobra.Command, args []string) error { return a.writeDocs(cmd.Root(), args[0], form) },
		})
	}
	return command
}

func (a *app) writeDocs(root *cobra.Command, dir string, form docsForm) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of the pages: %w", err)
	}
	root.Long += "\n\n" + indented(strings.TrimSpace(exitCodeHelp))
	written := 0
	var failed error
	eachCommand(root, func(cmd *cobra.Command) {
		if failed != nil {
			return
		}
		var page bytes.Buffer
		cmd.DisableAutoGenTag = true // it would carry the date
		if failed = form.write(cmd, &page); failed != nil {
			return
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", form.separator()) + form.ending
		failed = os.WriteFile(filepath.Join(dir, name), page.Bytes(), 0o644)
		written++
	})
	if failed != nil {
		return fmt.Errorf("writing the pages: %w", failed)
	}
	return a.print("%s written to %s\n", counted(written, "page"), dir)
}

// separator stands between the commands in a file's name, as cobra has it in links and in SEE ALSO.
func (f docsForm) separator() string {
	if f.ending == ".md" {
		return "_"
	}
	return "-"
}

// noDate marks a page without a date. manPage takes it out of the page, because cobra writes today's date for none.
var noDate = time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)

func manPage(cmd *cobra.Command, page *bytes.Buffer) error {
	header := &doc.GenManHeader{Section: "1", Source: "dynamill", Manual: "dynamill", Date: &noDate}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds", epoch)
		}
		date := time.Unix(seconds, 0).UTC()
		header.Date = &date
	}
	var raw bytes.Buffer
	if err := doc.GenMan(cmd, header, &raw); err != nil {
		return err
	}
	if header.Date == &noDate {
		page.Write(bytes.Replace(raw.Bytes(), []byte(noDate.Format("Jan 2006")), nil, 1))
		return nil
	}
	page.Write(raw.Bytes())
	return nil
}

func markdownPage(cmd *cobra.Command, page *bytes.Buffer) error { return doc.GenMarkdown(cmd, page) }

// indented is a text as a block of Markdown.
func indented(text string) string {
	return costIndent + strings.ReplaceAll(text, "\n", "\n"+costIndent)
}
