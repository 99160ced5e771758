package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

func newRelease() release {
	return release{version: "v1.2.3", url: "https://example.com/v1.2.3", time: time.Unix(1700000000, 0).UTC()}
}

// write writes a file of a directory for a test.
func write(t *testing.T, dir, name, content string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Archives depend on names, modes and contents of files only.
func TestTheSameFilesMakeTheSameArchive(t *testing.T) {
	for _, extension := range []string{".tar.gz", ".zip"} {
		var made []string
		for _, at := range []time.Time{time.Unix(1000, 0), time.Unix(2000, 0)} {
			dir := t.TempDir()
			files := []string{write(t, dir, "program", "x", 0o755), write(t, dir, "LICENSE", "y", 0o644)}
			for _, file := range files {
				if err := os.Chtimes(file, at, at); err != nil {
					t.Fatal(err)
				}
			}
			if at.Unix() == 2000 {
				files[0], files[1] = files[1], files[0]
			}
			out := filepath.Join(dir, "out"+extension)
			if err := newRelease().archive(out, files); err != nil {
				t.Fatal(err)
			}
			made = append(made, string(read(t, out)))
		}
		if made[0] != made[1] {
			t.Errorf("two archives %s of the same files differ", extension)
		}
	}
}

func TestRepackKeepsWhatAnArchiveHas(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "chart.tgz")
	earlier := release{time: time.Unix(1, 0)}
	if err := earlier.archive(out, []string{write(t, dir, "b", "2", 0o644), write(t, dir, "a", "1", 0o644)}); err != nil {
		t.Fatal(err)
	}
	if err := newRelease().repack(out); err != nil {
		t.Fatal(err)
	}
	entries, err := readTar(out)
	if err != nil || len(entries) != 2 || entries[0].name != "a" || string(entries[1].data) != "2" {
		t.Errorf("the archive has %+v (%v)", entries, err)
	}
}

// A bill of materials has what SPDX 2.3 requires of a document, and each module of the
// program: this test.
func TestSBOMNamesEachModuleOfAProgram(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "x.spdx.json")
	if err := newRelease().writeSBOM(out, []string{program}); err != nil {
		t.Fatal(err)
	}
	var d spdxDocument
	if err := json.Unmarshal(read(t, out), &d); err != nil {
		t.Fatal(err)
	}
	if d.SPDXVersion != "SPDX-2.3" || d.DataLicense != "CC0-1.0" || d.ID != "SPDXRef-DOCUMENT" || d.Name != "x" ||
		d.Namespace != "https://example.com/v1.2.3/x.spdx.json" || d.Creation.Created != "2023-11-14T22:13:20Z" {
		t.Errorf("the document is %+v", d)
	}
	ids, locators := map[string]bool{d.ID: true}, map[string]bool{}
	for _, p := range d.Packages {
		if !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(p.ID) || ids[p.ID] {
			t.Errorf("the id %s is invalid or not unique", p.ID)
		}
		ids[p.ID] = true
		for _, reference := range p.References {
			locators[reference.Locator] = true
		}
	}
	for _, r := range d.Relationships {
		if !ids[r.Element] || !ids[r.Related] {
			t.Errorf("%+v names an element that the document does not have", r)
		}
	}
	if want := "pkg:golang/stdlib@" + strings.TrimPrefix(runtime.Version(), "go"); !locators[want] {
		t.Errorf("the document does not name %s: %v", want, locators)
	}
	if len(d.Packages) < 3 { // the program, the standard library and a module
		t.Errorf("the document has %d packages", len(d.Packages))
	}
}

func TestSBOMRefusesAFileThatIsNoGoProgram(t *testing.T) {
	dir := t.TempDir()
	if err := newRelease().writeSBOM(filepath.Join(dir, "x.spdx.json"), []string{write(t, dir, "x", "x", 0o755)}); err == nil {
		t.Error("a text was taken for a program")
	}
}

// The manifest for krew has what krew's validation requires: its library cannot be
// had as a Go module, so the rules are repeated here.
func TestKrewManifest(t *testing.T) {
	dir := t.TempDir()
	archives := []string{
		write(t, dir, "kubectl-deckhand_v1.2.3_linux_amd64.tar.gz", "x", 0o644),
		write(t, dir, "kubectl-deckhand_v1.2.3_windows_amd64.zip", "y", 0o644),
	}
	out := filepath.Join(dir, "krew.yaml")
	if err := newRelease().writeKrew(out, archives); err != nil {
		t.Fatal(err)
	}
	var p krewPlugin
	if err := yaml.UnmarshalStrict(read(t, out), &p); err != nil {
		t.Fatal(err)
	}
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || !regexp.MustCompile(`^[\w-]+$`).MatchString(p.Metadata["name"]) {
		t.Errorf("the head is %s, %s, %v", p.APIVersion, p.Kind, p.Metadata)
	}
	if short := p.Spec.ShortDescription; short == "" || strings.Contains(short, "\n") || len(short) > 50 || !strings.HasPrefix(p.Spec.Version, "v") {
		t.Errorf("shortDescription is %q, version %s", short, p.Spec.Version)
	}
	if len(p.Spec.Platforms) != 2 {
		t.Fatalf("there are %d platforms", len(p.Spec.Platforms))
	}
	for _, platform := range p.Spec.Platforms {
		if !regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(platform.SHA256) || !strings.HasPrefix(platform.URI, "https://") ||
			platform.Bin == "" || len(platform.Files) < 2 || platform.Files[0].From != platform.Bin || len(platform.Selector.MatchLabels) != 2 {
			t.Errorf("a platform is %+v", platform)
		}
	}
	if linux := p.Spec.Platforms[0]; !slices.Contains(linux.Files, krewFile{From: "runner-local", To: "."}) {
		t.Errorf("run --local does not work after an installation of %+v", linux)
	}
	if windows := p.Spec.Platforms[1]; windows.Bin != "kubectl-deckhand.exe" || windows.Selector.MatchLabels["os"] != "windows" {
		t.Errorf("the platform of Windows is %+v", windows)
	}
}

func TestKrewRefusesAnArchiveWithoutAPlatform(t *testing.T) {
	dir := t.TempDir()
	if err := newRelease().writeKrew(filepath.Join(dir, "krew.yaml"), []string{write(t, dir, "plugin.zip", "x", 0o644)}); err == nil {
		t.Error("an archive without a platform was taken")
	}
}

func TestSumsAreThoseOfSha256sum(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", "x\n", 0o644)
	out := filepath.Join(dir, "SHA256SUMS")
	for range 2 { // the file of sums does not list itself
		if err := writeSums(out, dir); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := string(read(t, out)), "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac  a\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An archive of images has each under its tag and its digest, and every blob once.
func TestImagesAreInOneArchiveUnderTwoNames(t *testing.T) {
	dir := t.TempDir()
	args := []string{}
	for _, program := range []string{"manager", "runner"} {
		layout := filepath.Join(dir, program)
		if err := os.MkdirAll(filepath.Join(layout, "blobs", "sha256"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, layout, "index.json", `{"schemaVersion":2,"manifests":[{"mediaType":"m","size":1,"digest":"sha256:`+program+`"}]}`, 0o644)
		write(t, filepath.Join(layout, "blobs", "sha256"), "shared", "s", 0o644)
		write(t, filepath.Join(layout, "blobs", "sha256"), program, "p", 0o644)
		args = append(args, "host:5000/"+program+":v1.2.3="+layout)
	}
	out := filepath.Join(dir, "images.tar")
	if err := newRelease().images(out, args); err != nil {
		t.Fatal(err)
	}
	var files []string
	var index ociIndex
	for archive := tar.NewReader(bytes.NewReader(read(t, out))); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files = append(files, header.Name)
		if header.Name == "index.json" {
			if err := json.NewDecoder(archive).Decode(&index); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"blobs/sha256/manager", "blobs/sha256/runner", "blobs/sha256/shared", "index.json", "oci-layout"}; !slices.Equal(files, want) {
		t.Errorf("it has %q, want %q", files, want)
	}
	var names []string
	for _, m := range index.Manifests {
		names = append(names, m.Annotations[imageName])
	}
	want := []string{"host:5000/manager:v1.2.3", "host:5000/manager@sha256:manager", "host:5000/runner:v1.2.3", "host:5000/runner@sha256:runner"}
	if !slices.Equal(names, want) {
		t.Errorf("its images are %q, want %q", names, want)
	}
}
