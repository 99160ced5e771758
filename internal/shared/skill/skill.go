package skill

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// File is the file in the folder of a skill that makes it one.
const File = "SKILL.md"

// Bounds of a skill. Those of the texts are in characters, by https://agentskills.io/specification; the others are in
// bytes.
const (
	MaxFile          = 64 << 10
	maxFrontmatter   = 16 << 10
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

// A Skill is the frontmatter of a SKILL.md.
type Skill struct {
	// Name is the name of the skill and of its folder.
	Name string
	// Description says what the skill is for and when to use it.
	Description string
}

// An InvalidError means that a text is no SKILL.md. Its message has the line, and what to do.
type InvalidError struct {
	// Line is the line of the file, from 1; 0: the file as a whole.
	Line    int
	Problem string
}

func (e *InvalidError) Error() string {
	if e.Line == 0 {
		return File + ": " + e.Problem
	}
	return File + ":" + strconv.Itoa(e.Line) + ": " + e.Problem
}

func invalid(line int, format string, args ...any) error {
	return &InvalidError{Line: line, Problem: fmt.Sprintf(format, args...)}
}

const marker = "---"

// Parse reads the text of a SKILL.md in a folder of a name. Fields that the format does not have are ignored. An error
// is an *InvalidError.
func Parse(folder string, text []byte) (Skill, error) {
	switch {
	case len(text) > MaxFile:
		return Skill{}, invalid(0, "it has %d bytes, and at most %d are allowed: move parts of it to files beside it", len(text), MaxFile)
	case !utf8.Valid(text):
		return Skill{}, invalid(0, "it is not UTF-8 text")
	}
	head, err := frontmatter(string(bytes.TrimPrefix(text, []byte("\uFEFF"))))
	if err != nil {
		return Skill{}, err
	}
	fields, err := decode(head)
	if err != nil {
		return Skill{}, err
	}
	s := Skill{}
	for _, f := range texts {
		value, line, err := fields.text(f.name)
		if err == nil {
			err = f.check(value, line)
		}
		if err != nil {
			return Skill{}, err
		}
		switch f.name {
		case "name":
			s.Name = value
		case "description":
			s.Description = value
		}
	}
	if s.Name != folder {
		return Skill{}, invalid(fields.line("name"), "the name is %q, and the folder is %q: both must be the same", s.Name, folder)
	}
	return s, fields.metadata()
}

// frontmatter returns the lines between the markers.
func frontmatter(text string) (string, error) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRightFunc(first, unicode.IsSpace) != marker {
		return "", invalid(1, "it must begin with frontmatter: a line ---, then name and description, and another line ---")
	}
	var head strings.Builder
	for line := range strings.Lines(rest) {
		if strings.TrimRightFunc(line, unicode.IsSpace) == marker {
			return head.String(), nil
		}
		head.WriteString(line)
		if head.Len() > maxFrontmatter {
			break
		}
	}
	return "", invalid(1, "the frontmatter has no end within %d bytes: write a line --- after its last field", maxFrontmatter)
}

// A mapping has the fields of a frontmatter.
type mapping struct{ keys, values []*yaml.Node }

// offset is the number of lines before the frontmatter.
const offset = 1

// yamlLine matches the line in an error of the YAML library.
var yamlLine = regexp.MustCompile(`line ([0-9]+): `)

func decode(head string) (mapping, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
		return mapping{}, syntaxError(err)
	}
	if len(doc.Content) == 0 {
		return mapping{}, invalid(1, "the frontmatter is empty: write name and description")
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return mapping{}, invalid(root.Line+offset, "the frontmatter must be fields with values: write name: and description:")
	}
	return mappingOf(root)
}

// syntaxError describes YAML that cannot be read.
func syntaxError(err error) error {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if m := yamlLine.FindStringSubmatchIndex(text); m != nil {
		line, _ = strconv.Atoi(text[m[2]:m[3]]) // it matched digits; too many are none
		text = text[:m[0]] + text[m[1]:]
	}
	return invalid(line+offset, "the frontmatter is no YAML (%s): put a text with a colon or a # in it in quotation marks", text)
}

// mappingOf returns the fields of a node. It refuses what could stand for another text than is written.
func mappingOf(n *yaml.Node) (mapping, error) {
	var m mapping
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			return m, invalid(key.Line+offset, "the name of a field must be a text")
		case key.Anchor != "" || value.Anchor != "" || value.Kind == yaml.AliasNode:
			return m, invalid(key.Line+offset, "anchors and aliases are not allowed: write the value of %s itself", key.Value)
		case m.find(key.Value) != nil:
			return m, invalid(key.Line+offset, "%s is there twice: remove one of the two", key.Value)
		}
		m.keys, m.values = append(m.keys, key), append(m.values, value)
	}
	return m, nil
}

func (m mapping) find(name string) *yaml.Node {
	i := slices.IndexFunc(m.keys, func(k *yaml.Node) bool { return k.Value == name })
	if i < 0 {
		return nil
	}
	return m.values[i]
}

// line returns the line of a field, or the first line of the file.
func (m mapping) line(name string) int {
	if n := m.find(name); n != nil {
		return n.Line + offset
	}
	return 1
}

// text returns the value of a field; empty: there is none.
func (m mapping) text(name string) (value string, line int, err error) {
	n := m.find(name)
	switch {
	case n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return "", m.line(name), nil
	case n.Kind != yaml.ScalarNode || n.Tag != "!!str":
		return "", 0, invalid(n.Line+offset, "%s must be a text: put it in quotation marks", name)
	}
	return strings.TrimSpace(n.Value), n.Line + offset, nil
}

// metadata checks that the field metadata has fields of its own. Their values are for other programs and are not checked.
func (m mapping) metadata() error {
	if n := m.find("metadata"); n != nil && n.Kind != yaml.MappingNode && n.Tag != "!!null" {
		return invalid(n.Line+offset, "metadata must be fields with texts")
	}
	return nil
}

// A textField is a field with a text.
type textField struct {
	name     string
	most     int // characters
	required string
	matches  func(string) error
}

var texts = []textField{
	{name: "name", most: maxName, required: "write name: and the name of the folder", matches: checkName},
	{name: "description", most: maxDescription, required: "write description: and what the skill is for and when to use it"},
	{name: "compatibility", most: maxCompatibility},
}

func (f textField) check(value string, line int) error {
	switch n := utf8.RuneCountInString(value); {
	case value == "" && f.required != "":
		return invalid(line, "%s is missing: %s", f.name, f.required)
	case value == "":
		return nil
	case n > f.most:
		return invalid(line, "%s has %d characters, and at most %d are allowed", f.name, n, f.most)
	case strings.ContainsFunc(value, isControl):
		return invalid(line, "%s has a control character: remove it", f.name)
	case f.matches != nil:
		if err := f.matches(value); err != nil {
			return invalid(line, "%s", err)
		}
	}
	return nil
}

func isControl(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func checkName(name string) error {
	if nameForm.MatchString(name) {
		return nil
	}
	return errors.New("name must have lower-case letters and digits, with single - between them: write release-notes")
}
