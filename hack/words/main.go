// Command words checks the words of this repository: names against a list
// (identifiers.txt), and prose with Vale against a style of its own (styles).
//
//	words names DIR...    reports declared names that contain a listed word
//	words prose OUT       writes prose that is not in Markdown or comments below OUT, for Vale
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("words", flag.ContinueOnError)
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch flags.Arg(0) {
	case "names":
		return checkNames(os.Stdout, ".", flags.Args()[1:])
	case "prose":
		if flags.NArg() != 2 {
			return fmt.Errorf("prose needs a directory to write to")
		}
		return extractProse(".", flags.Arg(1))
	default:
		return fmt.Errorf("%q is not a command: write names or prose", flags.Arg(0))
	}
}
