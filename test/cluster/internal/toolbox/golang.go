package toolbox

import (
	"context"
	_ "embed" // go.sh and warm/warm_test.go
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Where Go is in the image, and where its standard library is compiled.
const (
	goRoot  = "/usr/local/go"
	goCache = goRoot + "/cache"
)

// goParts are the parts of a GOROOT that `go build`, `go test` and `go vet` need.
var goParts = []string{
	"VERSION", "go.env", "bin/go", "bin/gofmt", "pkg/include", "src", "lib",
	"pkg/tool/linux_amd64/asm", "pkg/tool/linux_amd64/compile", "pkg/tool/linux_amd64/cover",
	"pkg/tool/linux_amd64/link", "pkg/tool/linux_amd64/vet",
}

// goExcept excludes files below goParts that these commands do not need.
var goExcept = []string{"--exclude=*_test.go", "--exclude=testdata", "--exclude=src/cmd", "--exclude=*.syso"}

// warm is a test that imports the packages that tests commonly import.
//
//go:embed warm/warm_test.go
var warm string

// front is the program go of the image. The build cache must be writable, so at its first start it copies the cache of
// the image.
//
//go:embed go.sh
var front []byte

// golang returns the layer of this machine's Go.
func golang(version, from string) layer {
	return layer{
		name:   "go",
		inputs: slices.Concat([]string{"1", version, warm, string(front)}, goParts, goExcept),
		fill: func(ctx context.Context, root string) error {
			if err := copyTree(ctx, from, filepath.Join(root, goRoot), slices.Concat(goExcept, goParts)...); err != nil {
				return err
			}
			if err := warmUp(ctx, root); err != nil {
				return err
			}
			return put(filepath.Join(root, "usr/local/bin/go"), front, 0o755)
		},
	}
}

// warmUp runs the test with the tree as root directory, where all paths are those of the image, and the machine's C
// compiler is not found.
func warmUp(ctx context.Context, root string) error {
	for file, content := range map[string]string{
		"tmp/warm/go.mod": "module warm\n\ngo 1.24\n", "tmp/warm/warm_test.go": warm, "dev/null": "",
	} {
		if err := put(filepath.Join(root, file), []byte(content), 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"test", "-count=1", "./..."}, {"test", "-count=1", "-cover", "./..."}, {"vet", "./..."}} {
		cmd := exec.CommandContext(ctx, goRoot+"/bin/go", args...)
		cmd.Dir = "/tmp/warm"
		cmd.Env = []string{"HOME=/tmp", "GOROOT=" + goRoot, "GOCACHE=" + goCache, "GOTOOLCHAIN=local", "GOPROXY=off"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		if _, err := output(cmd); err != nil {
			return err
		}
	}
	for _, dir := range []string{"tmp", "dev"} { // the layer below has them
		if err := os.RemoveAll(filepath.Join(root, dir)); err != nil {
			return fmt.Errorf("removing the test: %w", err)
		}
	}
	return dropPrograms(filepath.Join(root, goCache))
}

// dropPrograms removes programs that were linked from a cache. They are large, and the same programs are not linked
// again.
func dropPrograms(cache string) error {
	root, err := os.OpenRoot(cache)
	if err != nil {
		return fmt.Errorf("opening the cache: %w", err)
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := root.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		magic := make([]byte, 4)
		if n, _ := f.Read(magic); n < len(magic) || string(magic) != "\x7fELF" { // shorter is no program
			return nil
		}
		return root.Remove(path)
	})
}

// put writes a file and makes its folder.
func put(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making folders: %w", err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	return nil
}

// copyTree copies files from one folder to another. args are the names and options for tar. The copies belong to root,
// and all users may read them.
func copyTree(ctx context.Context, from, to string, args ...string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	const script = `set -o pipefail; from=$1 to=$2; shift 2
		tar -C "$from" --owner=0 --group=0 --mode=u+w,a+rX -cf - "$@" | tar -C "$to" -xf -`
	_, err := output(exec.CommandContext(ctx, "bash", append([]string{"-c", script, "copy", from, to}, args...)...))
	return err
}

// goOf returns the version and the GOROOT of the machine's Go.
func goOf(ctx context.Context) (version, root string, err error) {
	out, err := output(exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOROOT"))
	if err != nil {
		return "", "", err
	}
	version, root, ok := strings.Cut(out, "\n")
	if !ok {
		return "", "", fmt.Errorf("go env answers %q", out)
	}
	return version, root, nil
}
