package template

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Foreign is a reference in the syntax of another tool. Here it is text.
type Foreign struct {
	Text         string // {{ parameters.x }}
	Path         []string
	Line, Column int // of its first character, from 1
}

// foreign matches {{ x.y }} as in Argo Workflows, $(params.x) as in Tekton, and ${input.x}, which
// lacks a brace. Such a name with a dot is no variable of a shell.
var foreign = regexp.MustCompile(`\{\{-?\s*=?\s*\.?([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*-?\}\}` +
	`|\$\(((?:params|inputs?|parameters|tasks|steps|context|workspaces)\.[\w.-]+)\)` +
	`|\$\{\s*((?:params|inputs?|parameters|tasks|steps|nodes|item|run|self|previous)\.[\w.-]+)\s*\}`)

// FindForeign returns the references in the syntax of another tool.
func FindForeign(text string) []Foreign {
	var out []Foreign
	for _, at := range foreign.FindAllStringSubmatchIndex(text, -1) {
		if at[0] > 0 && text[at[0]-1] == '$' { // ${{ x }}, or $${{ x }} for that text
			continue
		}
		from, to := at[2], at[3]
		for group := 4; from < 0; group += 2 {
			from, to = at[group], at[group+1]
		}
		before := text[:at[0]]
		out = append(out, Foreign{
			Text:   text[at[0]:at[1]],
			Path:   strings.Split(strings.Trim(text[from:to], "."), "."),
			Line:   1 + strings.Count(before, "\n"),
			Column: 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]),
		})
	}
	return out
}

// ForeignWarning says what happens with the references of another tool in a text for a model, and what to
// write; empty: it has none.
func ForeignWarning(field, text string) string {
	found := FindForeign(text)
	if len(found) == 0 {
		return ""
	}
	f := found[0]
	where := fmt.Sprintf("column %d", f.Column)
	if f.Line > 1 {
		where = fmt.Sprintf("line %d, %s", f.Line, where)
	}
	return fmt.Sprintf("%s: %s: %s is sent to the model as text; write ${{ input.%s }}%s", field, where, f.Text, f.Name(), OtherForeign(found))
}

// OtherForeign names the references behind the first, each once; empty: there are none.
func OtherForeign(found []Foreign) string {
	const most = 5
	var names []string
	for _, f := range found {
		if !slices.Contains(names, f.Text) {
			names = append(names, f.Text)
		}
	}
	if names = names[1:]; len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	if len(names) == 0 {
		return ""
	}
	return "; the same for " + strings.Join(names, ", ")
}

// Name is the last part of the path: the name of a value.
func (f Foreign) Name() string { return f.Path[len(f.Path)-1] }
