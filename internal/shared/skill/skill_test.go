package skill

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	long := strings.Repeat("é", 1024)
	for name, tc := range map[string]struct {
		text string
		want string // the description, or the error
	}{
		"the least":            {"---\nname: go-review\ndescription: Reviews Go.\n---\n", "Reviews Go."},
		"all fields":           {"---\nname: go-review\ndescription: Reviews Go.\nlicense: MIT\ncompatibility: needs go\nmetadata:\n  author: a\n  version: 1.0\nallowed-tools: Bash(git:*) Read\n---\n# Go\n", "Reviews Go."},
		"fields of others":     {"---\nname: go-review\ndescription: Reviews Go.\nmodel: opus\nhooks: {a: [1]}\nallowed-tools: [Read, Grep]\n---\n", "Reviews Go."},
		"quoted":               {"---\nname: \"go-review\"\ndescription: 'Use when: it is Go'\n---\n", "Use when: it is Go"},
		"several lines":        {"---\nname: go-review\ndescription: |\n  Reviews.\n  Go.\n---\n", "Reviews.\nGo."},
		"folded":               {"---\nname: go-review\ndescription: >-\n  Reviews\n  Go.\n---\n", "Reviews Go."},
		"of Windows":           {"\uFEFF---\r\nname: go-review\r\ndescription: Reviews Go.\r\n---\r\ntext", "Reviews Go."},
		"other scripts":        {"---\nname: go-review\ndescription: 审查 Go。\n---\n", "审查 Go。"},
		"as long as it may be": {"---\nname: go-review\ndescription: " + long + "\n---\n", long},
		"a line in the text":   {"---\nname: go-review\ndescription: a\n---\ntext\n---\n", "a"},

		"nothing":                {"", "SKILL.md:1: it must begin with frontmatter"},
		"no frontmatter":         {"# Go\n---\nname: go-review\n---\n", "SKILL.md:1: it must begin with frontmatter"},
		"no end":                 {"---\nname: go-review\n", "SKILL.md:1: the frontmatter has no end within"},
		"an end that is far":     {"---\nname: go-review\n" + strings.Repeat("a: b\n", 4000) + "---\n", "SKILL.md:1: the frontmatter has no end within"},
		"empty":                  {"---\n---\n", "SKILL.md:1: the frontmatter is empty"},
		"a comment alone":        {"---\n# name\n---\n", "SKILL.md:1: the frontmatter is empty"},
		"a list":                 {"---\n- name\n---\n", "SKILL.md:2: the frontmatter must be fields"},
		"a colon in a text":      {"---\nname: go-review\ndescription: Use when: it is Go\n---\n", "SKILL.md:3: the frontmatter is no YAML (mapping values are not allowed in this context): put a text"},
		"a tab":                  {"---\nname: go-review\n\tdescription: a\n---\n", "SKILL.md:3: the frontmatter is no YAML"},
		"no name":                {"---\ndescription: Reviews Go.\n---\n", "SKILL.md:1: name is missing: write name:"},
		"no description":         {"---\nname: go-review\ndescription:\n---\n", "SKILL.md:3: description is missing: write description:"},
		"blank":                  {"---\nname: go-review\ndescription: '  '\n---\n", "SKILL.md:3: description is missing"},
		"another name":           {"---\n# c\nname: review\ndescription: a\n---\n", `SKILL.md:3: the name is "review", and the folder is "go-review"`},
		"upper case":             {"---\nname: Go-Review\ndescription: a\n---\n", "SKILL.md:2: name must have lower-case letters"},
		"two hyphens":            {"---\nname: go--review\ndescription: a\n---\n", "SKILL.md:2: name must have lower-case letters"},
		"a path":                 {"---\nname: ../go\ndescription: a\n---\n", "SKILL.md:2: name must have lower-case letters"},
		"a number":               {"---\nname: go-review\ndescription: 42\n---\n", "SKILL.md:3: description must be a text"},
		"a list of descriptions": {"---\nname: go-review\ndescription: [a]\n---\n", "SKILL.md:3: description must be a text"},
		"too long":               {"---\nname: go-review\ndescription: " + long + "é\n---\n", "SKILL.md:3: description has 1025 characters, and at most 1024"},
		"long compatibility":     {"---\nname: go-review\ndescription: a\ncompatibility: " + strings.Repeat("a", 501) + "\n---\n", "SKILL.md:4: compatibility has 501 characters"},
		"metadata as text":       {"---\nname: go-review\ndescription: a\nmetadata: b\n---\n", "SKILL.md:4: metadata must be fields"},
		"twice":                  {"---\nname: go-review\ndescription: a\ndescription: b\n---\n", "SKILL.md:4: description is there twice"},
		"an anchor":              {"---\nname: &n go-review\ndescription: a\n---\n", "SKILL.md:2: anchors and aliases"},
		"an alias":               {"---\na: &n go-review\nname: *n\ndescription: a\n---\n", "SKILL.md:2: anchors and aliases"},
		"an escape":              {"---\nname: go-review\ndescription: \"a\\u001b[2J\"\n---\n", "SKILL.md:3: description has a control character"},
		"a turned text":          {"---\nname: go-review\ndescription: \"a\\u202eb\"\n---\n", "SKILL.md:3: description has a control character"},
		"no text":                {"---\nname: go-review\ndescription: \xff\n---\n", "SKILL.md: it is not UTF-8 text"},
		"too large":              {"---\nname: go-review\ndescription: a\n---\n" + strings.Repeat("a", MaxFile), "SKILL.md: it has 65"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("go-review", []byte(tc.text))
			if !strings.HasPrefix(tc.want, File) {
				if err != nil || got != (Skill{"go-review", tc.want}) {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if _, is := errors.AsType[*InvalidError](err); !is || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("the error is %v, want one that begins with %q", err, tc.want)
			}
		})
	}
}

// Whatever a text is, it is a skill or an InvalidError whose line the text has.
func FuzzParse(f *testing.F) {
	f.Add("---\nname: a\ndescription: b\n---\n")
	f.Add("---\na: &a [*a]\n<<: *a\n---\n")
	f.Add("---\n? [a]\n: b\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse("a", []byte(text))
		if err == nil {
			if got.Name != "a" || got.Description == "" {
				t.Errorf("got %+v", got)
			}
			return
		}
		invalid, is := errors.AsType[*InvalidError](err)
		if !is || invalid.Line < 0 || invalid.Line > strings.Count(text, "\n")+1 {
			t.Errorf("the error is %v of a text with %d lines", err, strings.Count(text, "\n")+1)
		}
	})
}
