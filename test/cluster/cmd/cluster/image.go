package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/cluster"
	"github.com/deckhand-dev/deckhand/test/cluster/internal/image"
)

// binaries is a flag that may be given more than once.
type binaries []image.Binary

func (b *binaries) String() string { return fmt.Sprint(*b) }

// Set reads path[=/dest]; without a destination the program is put at the root.
func (b *binaries) Set(value string) error {
	source, dest, ok := strings.Cut(value, "=")
	if !ok {
		dest = "/" + filepath.Base(source)
	}
	if !path.IsAbs(dest) {
		return errors.New("the destination must begin with a slash")
	}
	*b = append(*b, image.Binary{Source: source, Dest: dest})
	return nil
}

func makeImage(_ context.Context, _ cluster.Site, args []string) error {
	flags := flag.NewFlagSet("cluster image", flag.ExitOnError)
	var (
		programs binaries
		spec     image.Spec
		out      string
	)
	flags.StringVar(&spec.Name, "name", "", "`name:tag` of the image; latest would always be pulled")
	flags.Var(&programs, "binary", "`path[=/dest]` of a static linux/amd64 program; may be repeated")
	flags.StringVar(&spec.Entrypoint, "entrypoint", "", "what the image starts (default the first program)")
	flags.StringVar(&spec.User, "user", "65532", "`uid[:gid]` it runs as")
	flags.StringVar(&out, "o", "", "`file` to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if spec.Name == "" || out == "" || len(programs) == 0 {
		return errors.New("image needs -name, -o and at least one -binary")
	}
	spec.Binaries = programs
	if spec.Entrypoint == "" {
		spec.Entrypoint = programs[0].Dest
	}
	size, err := image.Write(spec, out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, size)
	return err
}
