package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// A krewPlugin is the manifest from which krew installs a plugin of kubectl:
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Caveats          string         `json:"caveats"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
	Files    []krewFile   `json:"files"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type krewFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// archiveName is kubectl-deckhand_v0.1.0_linux_amd64.tar.gz.
var archiveName = regexp.MustCompile(`^kubectl-deckhand_[^_]+_([a-z]+)_([a-z0-9]+)\.(?:tar\.gz|zip)$`)

// writeKrew writes the manifest of the plugin for the platforms of its archives.
func (r release) writeKrew(out string, archives []string) error {
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "deckhand"},
		Spec: krewSpec{
			Version: r.version, Homepage: "https://github.com/deckhand-dev/deckhand",
			ShortDescription: "Show and control runs of AI agents",
			Description: strings.Join([]string{
				"Lists and explains the Runs of Deckhand, prints their conversations, approves",
				"or denies tool calls, answers questions, and starts, pauses and stops Runs.", "",
			}, "\n"),
			Caveats: "The cluster needs Deckhand: https://github.com/deckhand-dev/deckhand\n",
		},
	}
	for _, archive := range archives {
		platform, err := r.krewPlatform(archive)
		if err != nil {
			return err
		}
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, platform)
	}
	data, err := yaml.Marshal(plugin)
	if err != nil {
		return err
	}
	return writeFile(out, data)
}

func (r release) krewPlatform(archive string) (krewPlatform, error) {
	base := filepath.Base(archive)
	m := archiveName.FindStringSubmatch(base)
	if m == nil {
		return krewPlatform{}, fmt.Errorf("reading the platform of %s: it must be named kubectl-deckhand_VERSION_OS_ARCH.tar.gz or .zip", base)
	}
	sum, err := sumOf(archive)
	if err != nil {
		return krewPlatform{}, err
	}
	bin := "kubectl-deckhand"
	if m[1] == "windows" {
		bin += ".exe"
	}
	files := []krewFile{{From: bin, To: "."}, {From: "LICENSE", To: "."}}
	if m[1] == "linux" { // for run --local
		files = append(files, krewFile{From: "runner-local", To: "."})
	}
	return krewPlatform{
		Selector: krewSelector{MatchLabels: map[string]string{"os": m[1], "arch": m[2]}},
		URI:      r.url + "/" + base, SHA256: sum, Bin: bin,
		Files: files,
	}, nil
}

func sumOf(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading what to sum: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
