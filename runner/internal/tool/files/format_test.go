package files

import (
	"fmt"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/backend/store"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/composite"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
)

// everyBackend runs a test over each driver.
func everyBackend(t *testing.T, test func(t *testing.T, b *backend.Backend)) {
	onDisk := func(t *testing.T) backend.Driver {
		d, err := disk.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	for name, open := range map[string]func(t *testing.T) backend.Driver{
		"disk":  onDisk,
		"state": func(*testing.T) backend.Driver { return state.New(state.Options{Now: noon}) },
		"store": func(*testing.T) backend.Driver {
			return store.New(store.NewMemory(store.MemoryOptions{Now: noon}), store.Options{})
		},
		"composite": func(t *testing.T) backend.Driver {
			c, err := composite.New(composite.Mount{Path: "/", Driver: onDisk(t)})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, backend.New(open(t), noon)) })
	}
}

// holds asserts the bytes of a file.
func holds(t *testing.T, b *backend.Backend, name, want string) {
	t.Helper()
	page, err := b.Read(t.Context(), name, backend.Window{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	same, err := b.Write(t.Context(), "same", []byte(want), backend.Any)
	if err != nil {
		t.Fatal(err)
	}
	if page.Version != same.Version {
		t.Errorf("the bytes of %q are not %q", name, want)
	}
}

// Read hides a byte order mark and the line ends of Windows, so Write puts them
// back into a file that has them.
func TestWriteKeepsWhatReadHid(t *testing.T) {
	const (
		crlf  = ". CRLF line ends were kept."
		mark  = ". The byte order mark was kept."
		both  = ". CRLF line ends were kept. The byte order mark was kept."
		mixed = ". The file had mixed line ends: all are now CRLF."
	)
	cases := map[string]struct{ before, content, after, said string }{
		"CRLF comes back":                          {"a\r\nb\r\n", "a\nc\nd\n", "a\r\nc\r\nd\r\n", crlf},
		"a byte order mark comes back":             {"\ufeffa\n", "b\n", "\ufeffb\n", mark},
		"both come back":                           {"\ufeffa\r\n", "b\n", "\ufeffb\r\n", both},
		"a mark that is written is not doubled":    {"\ufeffa\n", "\ufeffb\n", "\ufeffb\n", ""},
		"content with CRLF of its own is as it is": {"a\r\nb\r\n", "a\r\nb\nc\r\n", "a\r\nb\nc\r\n", ""},
		"plain line ends stay plain":               {"a\nb\n", "c\n", "c\n", ""},
		"content without a line end has none":      {"a\r\nb\r\n", "c", "c", ""},
		"a file without a line end tells nothing":  {"a", "b\nc\n", "b\nc\n", ""},
		"an empty content is empty":                {"\ufeffa\r\n", "", "", ""},
		"mixed line ends, most of them CRLF":       {"a\r\nb\r\nc\n", "x\ny\n", "x\r\ny\r\n", mixed},
		"mixed line ends, most of them LF":         {"a\nb\nc\r\n", "x\ny\n", "x\ny\n", ". The file had mixed line ends: all are now LF."},
		"a carriage return within a line stays":    {"a\r\nb\rc\r\n", "a\nb\rd\n", "a\r\nb\rd\r\n", crlf},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			everyBackend(t, func(t *testing.T, at *backend.Backend) {
				if _, err := at.Write(t.Context(), "f", []byte(tc.before), backend.Any); err != nil {
					t.Fatal(err)
				}
				b := bench{Toolset: Over(at, View{Root: "/workspace"}), t: t}
				b.call(`Read {"path":"f"}`)
				wrote := fmt.Sprintf(`Write {"path":"f","content":%q}`, tc.content)
				b.hold(dialogue{{wrote, fmt.Sprintf("Wrote /workspace/f (%s)%s", size(int64(len(tc.after))), tc.said)}})
				holds(t, at, "f", tc.after)

				// The call runs again in a session that was resumed, and in one that
				// never read the file.
				for _, knows := range []bool{true, false} {
					again := bench{Toolset: Over(at, View{Root: "/workspace"}), t: t}
					if knows {
						again.Replay(NameRead, []byte(`{"path":"f"}`))
					}
					if got := again.call(wrote); len(got) < 5 || got[:5] != "Wrote" {
						t.Errorf("repeated: %s", got)
					}
					holds(t, at, "f", tc.after)
				}
			})
		})
	}
}

func TestTextThatIsNotUTF8(t *testing.T) {
	everyBackend(t, func(t *testing.T, at *backend.Backend) {
		for name, content := range map[string]string{
			"latin": "caf\xe9\ntea\n", "two": "\xff\xfe\n", "wide": "\xff\xfea\x00\n\x00", "valid": "caf\u00e9 \ufffd\n",
		} {
			if _, err := at.Write(t.Context(), name, []byte(content), backend.Any); err != nil {
				t.Fatal(err)
			}
		}
		const lost = "Error: File 'latin' has 1 byte that is not UTF-8: Write would lose it" +
			"\n- Change parts of the file with Edit, which keeps such bytes." +
			"\n- Or convert it to UTF-8 with a command such as iconv, or remove it with a command if its content is not needed. Then Write."
		b := bench{Toolset: Over(at, View{Root: "/workspace"}), t: t}
		b.hold(dialogue{
			{`Read {"path":"latin"}`, "1  caf\ufffd\n2  tea\n[lines 1 to 2 of 2; 1 byte of the file is not UTF-8 and is shown as \ufffd: the encoding may be ISO-8859-1 or Windows-1252]"},
			{`Read {"path":"latin","offset":1}`, "2  tea\n[lines 2 to 2 of 2; 1 byte of the file is not UTF-8 and is shown as \ufffd: the encoding may be ISO-8859-1 or Windows-1252]"},
			{`Read {"path":"two"}`, "1  \ufffd\n[lines 1 to 1 of 1; 2 bytes of the file are not UTF-8 and are shown as \ufffd: the encoding may be ISO-8859-1 or Windows-1252]"},
			{`Read {"path":"wide"}`, "Error: File 'wide' is UTF-16 text, not UTF-8\n- Convert it to UTF-8 with a command such as iconv."},
			{`Read {"path":"valid"}`, "1  caf\u00e9 \ufffd\n[lines 1 to 1 of 1]"},
			{`Write {"path":"latin","content":"caf\ufffd\nmilk\n"}`, lost},
			{`Edit {"path":"latin","old_string":"caf\ufffd","new_string":"coffee"}`, "Error: String not found in file: 'caf\ufffd'\n- Read shows bytes that are not UTF-8 as \ufffd. Leave them out of old_string and new_string: Edit keeps them."},
			{`Edit {"path":"latin","old_string":"tea","new_string":"milk"}`, "Replaced 1 occurrence in /workspace/latin, at line 2"},
			{`Write {"path":"valid","content":"\ufffd\n"}`, "Wrote /workspace/valid (4 bytes)"},
		})
		holds(t, at, "latin", "caf\xe9\nmilk\n")

		// Neither does a session that was resumed, nor one that never read it.
		resumed := bench{Toolset: Over(at, View{Root: "/workspace"}), t: t}
		resumed.Replay(NameRead, []byte(`{"path":"latin"}`))
		resumed.hold(dialogue{{`Write {"path":"latin","content":"x"}`, lost}})
		stranger := bench{Toolset: Over(at, View{Root: "/workspace"}), t: t}
		stranger.hold(dialogue{{`Write {"path":"latin","content":"x"}`, "Error: You must read the file before overwriting it: 'latin' exists and has not been read\n- Read it, then Write or Edit."}})
		holds(t, at, "latin", "caf\xe9\nmilk\n")
	})
}

func TestEditTakesTheLineEndsOfTheFile(t *testing.T) {
	everyBackend(t, func(t *testing.T, at *backend.Backend) {
		for name, content := range map[string]string{"unix": "a\nb\n", "windows": "a\r\nb\r\n", "none": "a"} {
			if _, err := at.Write(t.Context(), name, []byte(content), backend.Any); err != nil {
				t.Fatal(err)
			}
		}
		b := bench{Toolset: Over(at, View{Root: "/workspace"}), t: t}
		for _, name := range []string{"unix", "windows", "none"} {
			b.call(fmt.Sprintf(`Read {"path":%q}`, name))
		}
		const same = "Error: old_string and new_string differ in line ends only, which Edit keeps as they are in the file\n- Change line ends with a command such as sed -i 's/\\r$//'."
		b.hold(dialogue{
			{`Edit {"path":"unix","old_string":"a\r\nb","new_string":"a\r\nx\r\nb"}`, "Replaced 1 occurrence in /workspace/unix, at line 1"},
			{`Edit {"path":"windows","old_string":"a\nb","new_string":"a\nx\r\nb"}`, "Replaced 1 occurrence in /workspace/windows, at line 1"},
			{`Edit {"path":"none","old_string":"a","new_string":"a\r\nb"}`, "Replaced 1 occurrence in /workspace/none, at line 1"},
			{`Edit {"path":"windows","old_string":"a\r\n","new_string":"a\n"}`, same},
			{`Edit {"path":"unix","old_string":"a\n","new_string":"a\r\n"}`, same},
		})
		holds(t, at, "unix", "a\nx\nb\n")
		holds(t, at, "windows", "a\r\nx\r\nb\r\n")
		holds(t, at, "none", "a\r\nb")
	})
}

func TestEditRefusesTheLineNumbersOfRead(t *testing.T) {
	const (
		file    = "package a\n\nfunc F() {\n\treturn\n}\n"
		refused = "Error: Each line of new_string begins with a line number that Read shows: the numbers are not part of the file\n" +
			"- Leave out each number and the two spaces after it.\n" +
			"- If the file is to have them, include a line without a number in old_string and new_string."
		first = "Replaced 1 occurrence in /workspace/f, at line "
	)
	cases := map[string]struct{ file, before, after, want string }{
		"a line copied with its number":     {file, "\treturn", "4  \treturn 1", refused},
		"lines copied with their numbers":   {file, "func F() {\n\treturn\n}", "3  func G() {\n4  \treturn\n5  }", refused},
		"numbers that go on after the text": {file, "\treturn\n", "4  \tx()\n5  \treturn\n", refused},
		"lines copied from another place":   {file, "}\n", "3  func F() {\n4  \treturn\n5  }\n", refused},
		"without the indentation":           {file, "return", "4  return 1", refused},
		"a number in the text itself":       {file, "func F() {", "1  is a number", first + "3"},
		"a numbered table for a word":       {"# List\n\nTODO\n", "TODO", "1  one\n2  two\n3  three", first + "3"},
		"a numbered table that changes":     {"1  one\n2  two\n", "1  one\n2  two", "1  eins\n2  zwei", first + "1"},
		"a line of a numbered table":        {"1  one\n2  two\n", "two", "2  zwei", first + "2"},
		"only some lines with numbers":      {file, "\treturn", "4  \treturn 1\n}", first + "4"},
		"numbers that do not follow":        {file, "\treturn", "4  \treturn 1\n9  \treturn 2", first + "4"},
		"a text that is deleted":            {file, "\treturn\n", "", first + "4"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.put("f", tc.file)
			b.call(`Read {"path":"f"}`)
			b.hold(dialogue{{fmt.Sprintf(`Edit {"path":"f","old_string":%q,"new_string":%q}`, tc.before, tc.after), tc.want}})
			if tc.want == refused && b.content("f") != tc.file {
				t.Errorf("the file has %q", b.content("f"))
			}
		})
	}
}
