package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// manifestDirs hold YAML whose messages and comments users read.
var manifestDirs = []string{
	"config/default", "config/demo", "config/manager", "config/metrics-authentication", "config/mutation", "config/samples", "examples",
	"charts/deckhand",
}

// makefile has the texts of make help.
const makefile = "Makefile"

// extractManifests writes the prose of manifests and of the Makefile.
func extractManifests(root, out string) error {
	files := os.DirFS(root)
	for _, dir := range manifestDirs {
		err := fs.WalkDir(files, dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !isManifest(path) {
				return err
			}
			data, err := fs.ReadFile(files, path)
			if err != nil {
				return err
			}
			return writeLines(filepath.Join(out, path+".txt"), manifestProse(string(data)))
		})
		if err != nil {
			return err
		}
	}
	data, err := fs.ReadFile(files, makefile)
	if err != nil {
		return err
	}
	return writeLines(filepath.Join(out, makefile+".txt"), helpProse(string(data)))
}

// isManifest leaves out the CRDs, whose texts are those of api.
func isManifest(path string) bool {
	return (strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, "NOTES.txt")) && !strings.Contains(path, "/crd/")
}

// manifestMessage matches the texts for users in a manifest: comments, and messages of admission policies.
var manifestMessage = regexp.MustCompile(`(?:^|\s)#\s+(.*)$|^\s*(?:-\s+)?(?:message|description):\s+(.*)$`)

// manifestExpression is the CEL expression that makes a message of an admission policy.
var manifestExpression = regexp.MustCompile(`^\s*(?:-\s+)?messageExpression:\s+(.*)$`)

func manifestProse(text string) prose {
	p := prose{}
	number, start := 0, 0
	var paragraph []string
	flush := func() {
		p.add(start, strings.Join(paragraph, " "))
		start, paragraph = 0, nil
	}
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		if e := manifestExpression.FindStringSubmatch(trimmed); e != nil {
			p.addLiterals(number, e[1])
		}
		m := manifestMessage.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case m == nil:
			flush()
		case strings.HasPrefix(trimmed, "#"):
			if start == 0 {
				start = number
			}
			paragraph = append(paragraph, m[1])
		default:
			flush()
			p.add(number, m[1]+strings.Trim(m[2], `"'`))
		}
	}
	flush()
	return p
}

// help is the text that make help prints about a target.
var help = regexp.MustCompile(`^[a-z][a-z-]*:.*?## (.*)$`)

func helpProse(text string) prose {
	p := prose{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if m := help.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			p.add(number, m[1])
		}
	}
	return p
}
