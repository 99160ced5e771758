package render_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// The tools that make test builds, and what they render.
const (
	helm      = "../../bin/tools/helm"
	kustomize = "../../bin/tools/kustomize"
	chart     = "../../charts/deckhand"
	config    = "../../config"
	files     = chart + "/files"
)

// An object is one rendered manifest.
type object struct {
	Kind     string
	Metadata struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	text []byte
}

// id says which object of a cluster this is.
func (o object) id() string {
	return o.Kind + " " + filepath.Join(o.Metadata.Namespace, o.Metadata.Name)
}

// template renders the chart as a release in the namespace deckhand-system.
func template(t *testing.T, release, values string) []object {
	t.Helper()
	out, err := tryTemplate(t, release, values)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, out)
}

func tryTemplate(t *testing.T, release, values string, flags ...string) ([]byte, error) {
	t.Helper()
	args := slices.Concat([]string{"template", release, chart, "--namespace=deckhand-system", "--values=-"}, flags)
	return run(t, values, helm, args...)
}

// readFolders reads the folders of what is rendered. go test repeats a result from its
// cache unless a file changed that was opened during a test, which the tools do on
// their own.
var readFolders = sync.OnceValue(func() error {
	read := func(_ string, _ fs.DirEntry, err error) error { return err }
	return errors.Join(filepath.WalkDir(chart, read), filepath.WalkDir(config, read))
})

// run starts one of the tools; its error is what the user would read.
func run(t *testing.T, stdin, tool string, args ...string) ([]byte, error) {
	t.Helper()
	if err := readFolders(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tool); err != nil {
		t.Skipf("%s is not built: run make test", tool)
	}
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.New(complaint.String())
	}
	return out, nil
}

func parse(t *testing.T, manifests []byte) []object {
	t.Helper()
	var objects []object
	for text := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		o := object{text: text}
		if err := yaml.Unmarshal(text, &o); err != nil {
			t.Fatalf("reading manifest: %v\n%s", err, text)
		}
		if o.Kind != "" {
			objects = append(objects, o)
		}
	}
	return objects
}

// read parses the files of a folder that chart and kustomization share.
func read(t *testing.T, folder string) []object {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(files, folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	var objects []object
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, parse(t, text)...)
	}
	return objects
}

// only keeps the objects of some kinds.
func only(objects []object, kinds ...string) []object {
	return slices.DeleteFunc(slices.Clone(objects), func(o object) bool {
		return !slices.Contains(kinds, o.Kind)
	})
}

// as reads an object as its Go type; an unknown field is an error.
func as[T any](t *testing.T, o object) T {
	t.Helper()
	var typed T
	if err := yaml.UnmarshalStrict(o.text, &typed); err != nil {
		t.Fatalf("reading %s: %v", o.id(), err)
	}
	return typed
}

// all reads the objects of one kind.
func all[T any](t *testing.T, objects []object, kind string) []T {
	t.Helper()
	var typed []T
	for _, o := range only(objects, kind) {
		typed = append(typed, as[T](t, o))
	}
	return typed
}

// manager is the only Deployment.
func manager(t *testing.T, objects []object) appsv1.Deployment {
	t.Helper()
	found := all[appsv1.Deployment](t, objects, "Deployment")
	if len(found) != 1 {
		t.Fatalf("%d Deployments, want 1", len(found))
	}
	return found[0]
}

func ids(objects []object) []string {
	var names []string
	for _, o := range objects {
		names = append(names, o.id())
	}
	slices.Sort(names)
	return names
}

func TestGolden(t *testing.T) {
	const golden = "testdata/default.golden.yaml"
	got, err := tryTemplate(t, "deckhand", "{crds: {install: false}, policies: {install: false}}")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s; go test ./test/render -update rewrites it: -want +got:\n%s", golden, diff)
	}
}
