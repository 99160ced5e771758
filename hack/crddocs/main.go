// Command crddocs finishes the CRDs that controller-gen writes.
//
// It joins the lines of each paragraph in their descriptions, so that kubectl explain wraps whole sentences:
// controller-gen keeps the line breaks of the Go comments. And it gives numbers of tokens their minimum, which
// controller-gen accepts for numbers only, and not for what may be a number or a string.
//
//	crddocs FILE...
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := rewrite(path); err != nil {
			fmt.Fprintln(os.Stderr, "crddocs:", err)
			os.Exit(1)
		}
	}
}

func rewrite(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	joined, err := join(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(bound(joined)), 0o600)
}

// tokens is the line of a CRD with the pattern of v1alpha1.Tokens. A string must match it; a number must not be below
// the minimum, which is ignored for a string.
var tokens = regexp.MustCompile(`(?m)^( *)(?:minimum: 1\n +)?(pattern: \^\[1-9\]\[0-9\]\{0,11\}\(k\|M\|G\)\?\$)$`)

// bound writes the minimum of each number of tokens.
func bound(crd string) string { return tokens.ReplaceAllString(crd, "${1}minimum: 1\n${1}${2}") }

var (
	blockStart  = regexp.MustCompile(`^( *)description: \|-?$`)
	quotedStart = regexp.MustCompile(`^( *)description: "`)
	listItem    = regexp.MustCompile(`^ {0,3}[-*] `)
)

// join rewrites each description of a CRD that has several lines.
func join(crd string) (string, error) {
	var out []string
	lines := strings.Split(crd, "\n")
	for i := 0; i < len(lines); i++ {
		block, quoted := blockStart.FindStringSubmatch(lines[i]), quotedStart.FindStringSubmatch(lines[i])
		if block == nil && quoted == nil {
			out = append(out, lines[i])
			continue
		}
		indent := append(block, quoted...)[1]
		first := i
		for i+1 < len(lines) && (strings.HasPrefix(lines[i+1], indent+"  ") || lines[i+1] == "") {
			i++
		}
		description, err := decode(lines[first : i+1])
		if err != nil {
			return "", fmt.Errorf("line %d: %w", first+1, err)
		}
		out = append(out, indent+"description: |-")
		for _, line := range joinLines(description) {
			out = append(out, strings.TrimRight(indent+"  "+line, " "))
		}
	}
	return strings.Join(out, "\n"), nil
}

// decode returns the lines of a description, which YAML writes as a block, or in quotes if they contain tabs.
func decode(lines []string) ([]string, error) {
	var decoded struct{ Description string }
	if err := yaml.Unmarshal([]byte(strings.Join(lines, "\n")), &decoded); err != nil {
		return nil, err
	}
	return strings.Split(decoded.Description, "\n"), nil
}

// joinLines joins the lines of each paragraph and of each list item. gofmt indents the lines of code by a tab, which
// makes controller-gen quote the description: they are kept, indented by spaces.
func joinLines(lines []string) []string {
	var out []string
	fresh, code := true, false
	for _, line := range lines {
		switch {
		case line == "":
			out, fresh = append(out, ""), true
			continue
		case strings.HasPrefix(line, "\t"), code && strings.HasPrefix(line, "    "):
			out = append(out, strings.Replace(line, "\t", "    ", 1))
			fresh, code = false, true
			continue
		case listItem.MatchString(line):
			out = append(out, strings.TrimSpace(line))
		case fresh:
			out = append(out, line)
			code = strings.HasPrefix(line, "    ")
			fresh = false
			continue
		default:
			out[len(out)-1] += " " + strings.TrimSpace(line)
		}
		fresh, code = false, false
	}
	return out
}
