package textcall

import "testing"

func TestFindAgainRecognizesACallInWhateverWords(t *testing.T) {
	for name, text := range map[string]string{
		"an offered tool":                   "<tool_call>{\"name\":\"Write\",\"arguments\":{\"path\":\"a\",\"content\":\"b\"}}</tool_call>",
		"a tool that is not offered":        "<tool_call>{\"name\":\"write_file\",\"arguments\":{\"path\":\"a\"}}</tool_call>",
		"a function with an invented end":   "<function=create_file>\n<parameter=path>\na\n</parameter>\n</function>\n<result>ok</result>\nReport written.",
		"invoke":                            "Report written:\n<invoke name=\"create_file\">\n<parameter name=\"path\">a</parameter>\n</invoke>\nAll is done, and the report is complete.",
		"Mistral":                           "Sure. [TOOL_CALLS] [{\"name\": \"create_file\"}]",
		"special tokens":                    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>create_file",
		"only a result":                     "<tool_response>\nok\n</tool_response>\nReport written.",
		"JSON":                              "{\"name\": \"create_file\", \"arguments\": {\"path\": \"a\"}}",
		"JSON with the arguments first":     "{\"arguments\": {\"path\": \"a\"}, \"name\": \"create_file\"}",
		"JSON with an id":                   "Calling:\n{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"create_file\", \"arguments\": \"{}\"}}",
		"JSON that has errors":              "{\"name\": \"create_file\", \"parameters\": {\"path\": \"a\n",
		"a dict of Python":                  "{'name': 'create_file', 'input': {'path': 'a'}}",
		"fenced JSON and prose":             "For example:\n```json\n{\"tool\": \"create_file\", \"args\": {\"path\": \"a\"}}\n```\nThe report was written to a, and nothing else changed.",
		"a fenced call that is explained":   "A call looks like this:\n```xml\n<tool_call>\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n</tool_call>\n```\nIt was executed.",
		"a script that is announced":        "calling it now\n```bash\ncat > report.md <<EOF\n# Report\nEOF\n```",
		"Python that is announced":          "I'll write the report:\n\n```python\nopen('a', 'w').write('b')\n```\nReport written.",
		"a script with an invented output":  "```bash\nmake test\n```\nOutput:\n```\nok\n```",
		"a script alone that writes a file": "```bash\ncat > report.md <<'EOF'\n# Report\nEOF\n```",
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := FindAgain(text, tools()); !ok {
				t.Errorf("FindAgain() found none in\n%s", text)
			}
		})
	}
}

func TestFindAgainIgnoresAPlainAnswer(t *testing.T) {
	for name, text := range map[string]string{
		"a result":                   "I could not write the report: the calls do not reach the tools.",
		"a tag in code":              "I cannot call tools: my `<tool_call>` is passed on as text, and so is `{\"name\": \"Write\", \"arguments\": {}}`.",
		"a tag in a sentence":        "The server passes <tool_call> on as text, so that nothing ran.",
		"a review with code":         "The loop never ends. Suggested change:\n\n```python\nfor x in xs:\n    f(x)\n```\n\nThen the test passes.",
		"a script for the reader":    "To reproduce the fault, use this:\n\n```bash\nmake test\n```\n\nIt fails in a minute.",
		"data":                       "{\"result\": \"ok\", \"files\": [\"a\"]}",
		"an object with a name only": "```json\n{\"name\": \"deckhand\", \"version\": \"1.2.0\"}\n```",
		"HTML":                       "```html\n<button class=\"call\">Write</button>\n```",
		"empty":                      "",
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := FindAgain(text, tools()); ok {
				t.Errorf("FindAgain() = %q, want none in\n%s", got.Name, text)
			}
		})
	}
}
