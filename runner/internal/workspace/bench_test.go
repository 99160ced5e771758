package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

// forest is a repository of 2,000 files of some KiB, and a few changes to it.
func forest() map[string]string {
	files := map[string]string{".gitignore": "*.o\n/build/\nnode_modules\n"}
	for i := range 2000 {
		files[fmt.Sprintf("d%d/e%d/file%d.go", i%10, i%37, i)] = strings.Repeat(fmt.Sprintf("line of file %d\n", i), 200)
	}
	return files
}

func BenchmarkFetch(b *testing.B) {
	s := serve(b, forest())
	for b.Loop() {
		newPlace(b, s.git()).fetch(b)
	}
}

func BenchmarkPublish(b *testing.B) {
	s := serve(b, forest())
	p := newPlace(b, s.git())
	p.fetch(b)
	for i := 0; b.Loop(); i++ {
		for j := range 20 {
			write(b, p.dir, map[string]string{fmt.Sprintf("d%d/new%d.go", j%10, j): fmt.Sprint("change ", i, j)})
		}
		_, err := p.publish(b)
		must(b, err)
	}
}

func BenchmarkPublishNothing(b *testing.B) {
	s := serve(b, forest())
	p := newPlace(b, s.git())
	p.fetch(b)
	for b.Loop() {
		if got, err := p.publish(b); err != nil || !got.Unchanged {
			b.Fatal(got, err)
		}
	}
}

func BenchmarkArtifacts(b *testing.B) {
	s := serve(b, forest())
	p := newPlace(b, s.git())
	p.fetch(b)
	root, err := os.OpenRoot(p.dir)
	must(b, err)
	defer root.Close()
	for b.Loop() {
		since, err := workspace.Begin(b.Context(), root, p.state)
		must(b, err)
		_, _, err = workspace.Artifacts(b.Context(), root, since)
		must(b, err)
	}
}

// BenchmarkPublishLarge is of one file of 400 MiB; the memory is what matters.
func BenchmarkPublishLarge(b *testing.B) {
	s := serve(b, seed)
	for i := 0; b.Loop(); i++ {
		p := newPlace(b, s.git())
		p.fetch(b)
		write(b, p.dir, map[string]string{"large": ""})
		must(b, os.Truncate(filepath.Join(p.dir, "large"), 400<<20))
		_, err := p.publish(b, func(o *workspace.PublishOptions) { o.Branch = fmt.Sprint("deckhand/", i) })
		must(b, err)
	}
}

// BenchmarkTakeOver copies the files of a Run, 3,400 of 39 MiB, to a Run that continues it. A copy by cp in the same run
// is the time of the disk.
func BenchmarkTakeOver(b *testing.B) {
	was := newBefore(b, nil, "one")
	for i := range 3400 {
		name := fmt.Sprintf("d%d/e%d/file%d.go", i%20, i%170, i)
		write(b, was.dir, map[string]string{name: strings.Repeat("0123456789abcde\n", 39<<20/3400/16)})
	}
	var copied, bare time.Duration
	for b.Loop() {
		b.StopTimer()
		syscall.Sync()
		p := after(b, nil)
		b.StartTimer()
		began := time.Now()
		p.continues(b, was)
		copied += time.Since(began)
		b.StopTimer()
		syscall.Sync()
		began = time.Now()
		must(b, exec.CommandContext(b.Context(), "cp", "-a", was.dir, filepath.Join(b.TempDir(), "copy")).Run())
		syscall.Sync()
		bare += time.Since(began)
		b.StartTimer()
	}
	b.ReportMetric(float64(copied.Milliseconds())/float64(b.N), "takeover-ms")
	b.ReportMetric(float64(bare.Milliseconds())/float64(b.N), "cp-ms")
}
