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

// stringMap is a flag key=value that may be given more than once.
type stringMap map[string]string

func (m stringMap) String() string { return fmt.Sprint(map[string]string(m)) }

// Set reads key=value.
func (m stringMap) Set(value string) error {
	key, text, ok := strings.Cut(value, "=")
	if !ok {
		return errors.New("write key=value")
	}
	m[key] = text
	return nil
}

func makeImage(_ context.Context, _ cluster.Site, args []string) error {
	flags := flag.NewFlagSet("cluster image", flag.ExitOnError)
	var (
		programs binaries
		spec     image.Spec
		out      string

		directory, architectures string
		labels                   = stringMap{}
	)
	flags.StringVar(&spec.Name, "name", "", "`name:tag` of the image; latest would always be pulled")
	flags.Var(&programs, "binary", "`path[=/dest]` of a static linux/amd64 program; may be repeated")
	flags.StringVar(&spec.Entrypoint, "entrypoint", "", "what the image starts (default the first program)")
	flags.StringVar(&spec.User, "user", "65532", "`uid[:gid]` it runs as")
	flags.StringVar(&out, "o", "", "`file` to write")
	flags.StringVar(&directory, "layout", "", "`directory` to write in place of a file, as an OCI layout of all architectures; prints the digest")
	flags.StringVar(&architectures, "arch", "amd64", "architectures of a layout, separated by commas; {arch} in -binary is replaced by each")
	flags.Var(labels, "label", "`key=value` of the image; may be repeated")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if spec.Name == "" || (out == "") == (directory == "") || len(programs) == 0 {
		return errors.New("image needs -name, at least one -binary, and either -o or -layout")
	}
	spec.Binaries, spec.Labels = programs, labels
	if spec.Entrypoint == "" {
		spec.Entrypoint = programs[0].Dest
	}
	if directory != "" {
		return writeLayout(spec, strings.Split(architectures, ","), directory)
	}
	size, err := image.Write(spec, out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, size)
	return err
}

// writeLayout writes the image of each architecture into one layout.
func writeLayout(spec image.Spec, architectures []string, directory string) error {
	var specs []image.Spec
	for _, arch := range architectures {
		of := spec
		of.Arch, of.Binaries = arch, nil
		for _, b := range spec.Binaries {
			b.Source = strings.ReplaceAll(b.Source, "{arch}", arch)
			of.Binaries = append(of.Binaries, b)
		}
		specs = append(specs, of)
	}
	digest, err := image.WriteLayout(specs, directory)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, digest)
	return err
}

// pushLayout pushes an image that writeLayout wrote.
func pushLayout(ctx context.Context, _ cluster.Site, args []string) error {
	if len(args) != 2 {
		return errors.New("push takes the directory of a layout and the name:tag of the image")
	}
	return image.Push(ctx, args[0], args[1])
}
