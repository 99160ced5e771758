package files

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestEdit(t *testing.T) {
	b := newBench(t)
	b.put("f", "a\r\nsame\r\nsame\r\n\tindented\r\nlast")
	b.put("twice", "last last")
	b.hold(dialogue{
		{`Edit {"path":"none","old_string":"a","new_string":"b"}`, "Error: File 'none' not found\n- Find it with Glob or Ls."},
		{`Edit {"path":"f","old_string":"a","new_string":"b"}`, "Error: You must read the file before editing it: 'f' has not been read\n- Read it, then Edit."},
		{`Read {"path":"f","limit":1}`, "1  a\n[lines 1 to 1 of 5; next_offset: 1]"},
		{`Read {"path":"twice"}`, "1  last last\n[lines 1 to 1 of 1]"},
		{`Edit {"path":"f","old_string":"a\nsame\n","new_string":"A\nsame\n"}`, "Replaced 1 occurrence in /workspace/f, at line 1"},
		{`Edit {"path":"f","old_string":"same","new_string":"other"}`, "Error: String 'same' appears 2 times in file. Use replace_all=True to replace all instances, or provide a more specific string with surrounding context.\n- It is in lines 2, 3."},
		{`Edit {"path":"f","old_string":"same","new_string":"other","replace_all":true}`, "Replaced 2 occurrences in /workspace/f, the first at line 2"},
		{`Edit {"path":"f","old_string":"nowhere","new_string":"x"}`, "Error: String not found in file: 'nowhere'\n- Read the file again: the text must match exactly, white space included."},
		{`Edit {"path":"f","old_string":"    indented","new_string":"x"}`, "Error: String not found in file: '    indented'\n- Line 4 differs from it in white space only: copy it exactly as Read shows it."},
		{`Edit {"path":"f","old_string":"2  other\n3  other","new_string":"x"}`, "Error: String not found in file: '2  other\n3  other'\n- Leave out the line numbers that Read puts before each line."},
		{`Edit {"path":"f","old_string":"last\n","new_string":"x\n"}`, "Error: old_string ends with a newline, but the file does not end with a newline. Retry with the trailing newline removed from old_string (and from new_string if it also ends with a newline)."},
		{`Edit {"path":"twice","old_string":"last\n","new_string":"x\n"}`, "Error: old_string ends with a newline, but the file does not end with a newline. With the trailing newline removed, old_string would appear 2 times in the file. Retry with the trailing newline removed and add surrounding context so the match is unique."},
		{`Edit {"path":"f","old_string":"A","new_string":"A"}`, "Error: old_string and new_string are the same: there is nothing to change"},
		{`Edit {"path":"f","old_string":"","new_string":"A"}`, "Error: old_string is empty\n- Put the text to replace there; use Write to replace the whole file."},
	})
	if got, want := b.content("f"), "A\r\nsame\r\nsame\r\n\tindented\r\nlast"; got != strings.ReplaceAll(want, "same", "other") {
		t.Errorf("the file has %q", got)
	}
	b.put("empty", "")
	b.put("aaa", "aaa")
	b.hold(dialogue{
		{`Edit {"path":"none","old_string":"","new_string":"b"}`, "Error: File 'none' not found: Edit changes files that exist\n- Create it with Write."},
		{`Edit {"path":"no/dir","old_string":"","new_string":"b"}`, "Error: File 'no/dir' not found: Edit changes files that exist\n- Create it with Write."},
		{`Edit {"path":"empty","old_string":"","new_string":"b"}`, "Error: You must read the file before editing it: 'empty' has not been read\n- Read it, then Edit."},
		{`Read {"path":"empty"}`, "System reminder: File exists but has empty contents"},
		{`Edit {"path":"empty","old_string":"","new_string":"b"}`, "Replaced 1 occurrence in /workspace/empty, at line 1"},
		{`Read {"path":"aaa"}`, "1  aaa\n[lines 1 to 1 of 1]"},
		{`Edit {"path":"aaa","old_string":"aa","new_string":"b"}`, "Error: String 'aa' appears 2 times in file. Use replace_all=True to replace all instances, or provide a more specific string with surrounding context.\n- It is in lines 1, 1."},
		{`Edit {"path":"aaa","old_string":"aa","new_string":"b","replace_all":true}`, "Replaced 1 occurrence in /workspace/aaa, at line 1"},
		{`Edit {"path":"f","old_string":"7","new_string":""}`, "Error: String not found in file: '7'\n- Read the file again: the text must match exactly, white space included."},
	})
	b.put("f", "theirs")
	b.hold(dialogue{
		{`Edit {"path":"f","old_string":"theirs","new_string":"ours"}`, "Error: File 'f' was modified since it was read\n- Read it again, then repeat the change if it still applies."},
	})
}

// Line numbers that were copied from a tool are recognized by the lines of the file
// behind them, however they are separated.
func TestEditHintsAtCopiedLineNumbers(t *testing.T) {
	const hint = "Leave out the line numbers that Read puts before each line."
	cases := map[string]struct {
		old  string
		hint bool
	}{
		"as Read shows them":                   {"1  alpha()\n2  \n3      beta()", true},
		"without the spaces of an empty line":  {"1  alpha()\n2\n3      beta()", true},
		"only behind the first line":           {"alpha()\n2\n3      beta()", true},
		"with a tab, as cat -n does":           {"     3\t    beta()", true},
		"with an arrow":                        {"     3→    beta()\n     4→gamma()", true},
		"with a colon, as grep -n does":        {"4:gamma()", true},
		"as Grep shows them":                   {"/workspace/f:4:gamma()", true},
		"with a bar":                           {"   1 | alpha()\n   2 |", true},
		"of an older state of the file":        {"41  alpha()", true},
		"of a part of a line, as Read does":    {"4  gamm", true},
		"a number that is part of the text":    {"3 beta() gamma()", false},
		"a number before a part of a line":     {"4 alph", false},
		"rows of numbers":                      {"1\t2\n3\t4", false},
		"only numbers":                         {"1\n2\n3", false},
		"a number alone":                       {"7", false},
		"text without numbers that is nowhere": {"delta()", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put("f", "alpha()\n\n    beta()\ngamma()\n")
			b.call(`Read {"path":"f"}`)
			got := b.call(fmt.Sprintf(`Edit {"path":"f","old_string":%q,"new_string":"x"}`, tc.old))
			if !strings.HasPrefix(got, "Error: String not found in file") || strings.Contains(got, hint) != tc.hint {
				t.Error(got)
			}
		})
	}
}

// Edits of one file in one turn all take effect, however its path is written.
func TestEditsOfOneFile(t *testing.T) {
	b := newBench(t)
	var before strings.Builder
	for i := range 20 {
		fmt.Fprintf(&before, "<%d>\n", i)
	}
	b.put("f", before.String())
	b.call(`Read {"path":"f"}`)
	var all sync.WaitGroup
	for i := range 20 {
		name := []string{"f", "./f", "/workspace/f"}[i%3]
		all.Go(func() {
			got := b.call(fmt.Sprintf(`Edit {"path":%q,"old_string":"<%d>","new_string":"done"}`, name, i))
			if !strings.HasPrefix(got, "Replaced 1") {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if got := b.content("f"); got != strings.Repeat("done\n", 20) {
		t.Errorf("the file has %q", got)
	}
}
