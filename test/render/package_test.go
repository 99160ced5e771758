package render_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackagedChartRendersTheSame(t *testing.T) {
	dir := t.TempDir()
	if _, err := run(t, "", helm, "package", chart, "--destination="+dir); err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(filepath.Join(dir, "deckhand-*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("helm package wrote %v, %v; want one archive", archives, err)
	}
	for name, values := range map[string]string{"by default": "", "in two namespaces": "watchNamespaces: [team-a, team-b]"} {
		t.Run(name, func(t *testing.T) {
			want, err := tryTemplate(t, "prod", values)
			if err != nil {
				t.Fatal(err)
			}
			got, err := run(t, values, helm, "template", "prod", archives[0], "--namespace=deckhand-system", "--values=-")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-directory +package:\n%s", diff)
			}
		})
	}
	for _, name := range archived(t, archives[0]) {
		if strings.HasSuffix(name, "kustomization.yaml") {
			t.Errorf("the package has %s", name)
		}
	}
}

// archived lists the files of a packaged chart.
func archived(t *testing.T, path string) []string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

// The source controller of Flux leaves symbolic links out of its archives, Argo CD
// refuses those that leave the repository, and Git on Windows writes them as text files.
func TestChartHasNoSymbolicLinks(t *testing.T) {
	err := filepath.WalkDir(chart, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !entry.Type().IsRegular() {
			t.Errorf("%s is not a regular file", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// config/crd, config/rbac, config/policy and config/mutation install their part alone, with every file
// of the chart: Kustomize needs each file by its name, Helm finds them by pattern.
func TestKustomizationsOfParts(t *testing.T) {
	for part, kinds := range map[string][]string{
		"crd":      {"CustomResourceDefinition"},
		"rbac":     {"ClusterRole"},
		"policy":   {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
		"mutation": {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
	} {
		out, err := run(t, "", kustomize, "build", filepath.Join(config, part))
		if err != nil {
			t.Fatal(err)
		}
		got, want := ids(parse(t, out)), ids(only(read(t, part), kinds...))
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("config/%s: -files +kustomize:\n%s", part, diff)
		}
	}
}
