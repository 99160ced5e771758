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
	b.put("f", "theirs")
	b.hold(dialogue{
		{`Edit {"path":"f","old_string":"theirs","new_string":"ours"}`, "Error: File 'f' was modified since it was read\n- Read it again, then repeat the change if it still applies."},
	})
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
