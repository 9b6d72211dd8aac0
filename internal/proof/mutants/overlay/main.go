// Command overlay writes the guarded files of the module in the working folder, each with
// its switches, into a folder, and prints the file for go test -overlay.
package main

import (
	"fmt"
	"os"

	"github.com/dynamill/dynamill/internal/proof/mutants"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: overlay <folder>")
		os.Exit(2)
	}
	file, err := mutants.Write(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(file)
}
