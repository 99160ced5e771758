// Command release writes the files of a release that are not programs: archives, images in one
// file, bills of materials, the manifest for krew, and checksums. The same inputs give the
// same bytes: all times are SOURCE_DATE_EPOCH.
//
// `make release` runs it through hack/release/build.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const usage = `usage: release VERB [flags] FILE...

  archive -o OUT FILE...     write a .tar.gz or .zip of files
  repack CHART.tgz           write the archive anew, with sorted names and fixed times
  images -o OUT NAME=DIR...  write one OCI archive (.tar) of the images of OCI layouts
  sbom -o OUT PROGRAM...     write an SPDX document of what Go programs are built of
  krew -o OUT ARCHIVE...     write the manifest of the plugin for krew
  sums -o OUT DIR            write the SHA-256 of each file of a directory

Environment: SOURCE_DATE_EPOCH, VERSION (such as v0.1.0), and RELEASE_URL, from which
the files are downloaded.
`

var errUsage = errors.New(strings.TrimSpace(usage))

// A release is a version of Deckhand, with its address and time.
type release struct {
	version string
	url     string
	time    time.Time
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("reading SOURCE_DATE_EPOCH: %w", err)
	}
	r := release{version: os.Getenv("VERSION"), time: time.Unix(seconds, 0).UTC()}
	r.url = cmp.Or(os.Getenv("RELEASE_URL"), "https://github.com/deckhand-dev/deckhand/releases/download/"+r.version)
	verb, flags := args[0], flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	out := flags.String("o", "", "`file` to write")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if r.version == "" || flags.NArg() == 0 || *out == "" && verb != "repack" {
		return errUsage
	}
	switch files := flags.Args(); verb {
	case "archive":
		return r.archive(*out, files)
	case "repack":
		return r.repack(files[0])
	case "images":
		return r.images(*out, files)
	case "sbom":
		return r.writeSBOM(*out, files)
	case "krew":
		return r.writeKrew(*out, files)
	case "sums":
		return writeSums(*out, files[0])
	default:
		return errUsage
	}
}
