// Command crddocs joins the lines of each paragraph in the descriptions of CRDs, so that kubectl explain wraps whole
// sentences. controller-gen keeps the line breaks of the Go comments.
//
//	crddocs FILE...
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
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
	return os.WriteFile(path, []byte(join(string(text))), 0o600)
}

var (
	blockStart = regexp.MustCompile(`^( *)description: \|-?$`)
	listItem   = regexp.MustCompile(`^([-*]|\d+\.) `)
)

// join joins the lines of each paragraph of each block "description: |-". A line of a list begins a new line.
func join(crd string) string {
	var out []string
	lines := strings.Split(crd, "\n")
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		start := blockStart.FindStringSubmatch(lines[i])
		if start == nil {
			continue
		}
		indent := start[1] + "  "
		fresh := true
		for i+1 < len(lines) && (strings.HasPrefix(lines[i+1], indent) || lines[i+1] == "") {
			i++
			line := strings.TrimPrefix(lines[i], indent)
			switch {
			case line == "":
				out, fresh = append(out, ""), true
			case fresh || listItem.MatchString(line) || strings.HasPrefix(line, " "):
				out, fresh = append(out, lines[i]), false
			default:
				out[len(out)-1] += " " + line
			}
		}
	}
	return strings.Join(out, "\n")
}
