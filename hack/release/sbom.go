package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// noAssertion is the value of SPDX for unknown facts.
const noAssertion = "NOASSERTION"

// The parts of SPDX 2.3 that a bill of materials of Go programs needs:
// https://spdx.github.io/spdx-spec/v2.3/.
type (
	spdxDocument struct {
		SPDXVersion   string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		Name             string            `json:"name"`
		ID               string            `json:"SPDXID"`
		Version          string            `json:"versionInfo"`
		DownloadLocation string            `json:"downloadLocation"`
		FilesAnalyzed    bool              `json:"filesAnalyzed"`
		Checksums        []spdxChecksum    `json:"checksums,omitempty"`
		LicenseConcluded string            `json:"licenseConcluded"`
		LicenseDeclared  string            `json:"licenseDeclared"`
		Copyright        string            `json:"copyrightText"`
		Purpose          string            `json:"primaryPackagePurpose"`
		References       []spdxExternalRef `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxExternalRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// writeSBOM writes an SPDX document of programs: each depends on the Go modules that
// its build information names, and on the standard library.
func (r release) writeSBOM(out string, programs []string) error {
	name := strings.TrimSuffix(filepath.Base(out), ".spdx.json")
	d := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: r.url + "/" + filepath.Base(out),
		Creation:  spdxCreation{Created: r.time.Format(time.RFC3339), Creators: []string{"Organization: The Deckhand authors", "Tool: deckhand-release"}},
	}
	for _, program := range programs {
		if err := d.addProgram(program, r.version); err != nil {
			return err
		}
	}
	d.sort()
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(out, append(data, '\n'))
}

// addProgram adds a program and the modules that it is built of.
func (d *spdxDocument) addProgram(program, version string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading what %s is built of: %w", program, err)
	}
	sum, err := sumOf(program)
	if err != nil {
		return err
	}
	p := newPackage(filepath.Base(program), version, "APPLICATION")
	p.ID += "-program" // no module has this id
	p.LicenseDeclared = "Apache-2.0"
	p.Checksums = []spdxChecksum{{Algorithm: "SHA256", Value: sum}}
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, spdxRelationship{d.ID, "DESCRIBES", p.ID})
	modules := []*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range append(modules, info.Deps...) {
		for m.Replace != nil {
			m = m.Replace
		}
		dependency := newModule(m)
		d.Packages = append(d.Packages, dependency)
		d.Relationships = append(d.Relationships, spdxRelationship{p.ID, "DEPENDS_ON", dependency.ID})
	}
	return nil
}

// sort puts the document in one order, with each package once.
func (d *spdxDocument) sort() {
	slices.SortFunc(d.Packages, func(a, b spdxPackage) int { return strings.Compare(a.ID, b.ID) })
	d.Packages = slices.CompactFunc(d.Packages, func(a, b spdxPackage) bool { return a.ID == b.ID })
	key := func(r spdxRelationship) string { return r.Element + " " + r.Type + " " + r.Related }
	slices.SortFunc(d.Relationships, func(a, b spdxRelationship) int { return strings.Compare(key(a), key(b)) })
}

func newModule(m *debug.Module) spdxPackage {
	p := newPackage(m.Path, m.Version, "LIBRARY")
	p.DownloadLocation = "https://proxy.golang.org/" + m.Path + "/@v/" + m.Version + ".zip"
	if m.Path == "stdlib" {
		p.DownloadLocation = "https://go.dev/dl/go" + m.Version + ".src.tar.gz"
	}
	p.References = []spdxExternalRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + url.QueryEscape(m.Version)}}
	return p
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func newPackage(name, version, purpose string) spdxPackage {
	return spdxPackage{
		Name: name, ID: "SPDXRef-" + notInID.ReplaceAllString(name+"-"+version, "-"), Version: version, Purpose: purpose,
		DownloadLocation: noAssertion, LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, Copyright: noAssertion,
	}
}

// writeSums writes the SHA-256 of each file of a directory, as sha256sum does.
func writeSums(out, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, file := range files {
		if file.IsDir() || file.Name() == filepath.Base(out) {
			continue
		}
		sum, err := sumOf(filepath.Join(dir, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, file.Name())
	}
	return writeFile(out, []byte(lines.String()))
}
