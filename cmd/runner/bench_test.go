package main_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// programs are the files of the runner's image, built once as they are released.
var programs = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "runner")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir, ".", "../sandbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building: %w: %s", err, out)
	}
	var all []byte
	for _, name := range []string{"runner", "sandbox"} {
		program, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		all = append(all, program...)
	}
	return all, nil
})

// BenchmarkImage is the programs as the image has them, compressed as registries
// send it: all that is pulled but for the base.
func BenchmarkImage(b *testing.B) {
	program, err := programs()
	if err != nil {
		b.Fatal(err)
	}
	var size counter
	for b.Loop() {
		size = 0
		w := gzip.NewWriter(&size)
		if _, err := w.Write(program); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(float64(len(program))/1e6, "unpacked-MB")
}

// A counter is a Writer that only counts.
type counter int64

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
