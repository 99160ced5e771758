package textcall

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// tools are built-in tools, tools of MCP servers and a tool without parameters.
func tools() []step.Tool {
	input := func(required string, properties ...string) []byte {
		var all []string
		for _, p := range properties {
			all = append(all, `"`+p+`":{"type":"string"}`)
		}
		return []byte(`{"type":"object","properties":{` + strings.Join(all, ",") + `},"required":[` + required + `]}`)
	}
	return []step.Tool{
		{Name: "Write", Input: input(`"path","content"`, "path", "content")},
		{Name: "Read", Input: input(`"path"`, "path", "offset", "limit")},
		{Name: "Edit", Input: input(`"path","old_string","new_string"`, "path", "old_string", "new_string")},
		{Name: "LS", Input: input(``, "path")},
		{Name: "shell", Input: input(`"command"`, "command", "timeout_seconds")},
		{Name: "finish", Input: input(`"text"`, "text")},
		{Name: "odd__create_issue", Input: input(`"title"`, "title", "body")},
		{Name: "get-weather", Input: input(`"city"`, "city", "unit")},
		{Name: "time__now", Input: []byte(`{"type":"object"}`)},
	}
}

func TestFindRecognizesACallThatWasWrittenAsText(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"Hermes":                                    {"I'll write the file now.\n<tool_call>\n{\"name\": \"Write\", \"arguments\": {\"path\": \"/workspace/report.md\", \"content\": \"# Report\\n\"}}\n</tool_call>", "Write"},
		"Hermes that is not closed":                 {"<tool_call>\n{\"name\": \"odd__create_issue\", \"arguments\": {\"title\": \"It leaks\"}}", "odd__create_issue"},
		"Hermes that was cut":                       {"<tool_call>\n{\"name\": \"Write\", \"arguments\": {\"path\": \"/a\", \"cont", "Write"},
		"Hermes with the arguments first":           {"<tool_call>{\"arguments\": {\"command\": \"ls\"}, \"name\": \"Shell\"}</tool_call>", "shell"},
		"Hermes with quotes of Python":              {"<tool_call>\n{'name': 'shell', 'arguments': {'command': 'ls'}}\n</tool_call>", "shell"},
		"Hermes with line breaks in JSON":           {"<tool_call>\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"one\ntwo\"}}\n</tool_call>", "Write"},
		"Hermes behind a sentence on the same line": {"Let me look. <tool_call>{\"name\": \"LS\", \"arguments\": {}}</tool_call>", "LS"},
		"several calls":                             {"<tool_call>{\"name\": \"Read\", \"arguments\": {\"path\": \"a\"}}</tool_call>\n<tool_call>{\"name\": \"Read\", \"arguments\": {\"path\": \"b\"}}</tool_call>", "Read"},
		"a name in another case":                    {"<tool_call>{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}</tool_call>", "Write"},
		"Qwen Coder":                                {"I will read it.\n\n<tool_call>\n<function=Read>\n<parameter=path>\n/workspace/a.go\n</parameter>\n</function>\n</tool_call>", "Read"},
		"Qwen Coder without the outer tag":          {"<function=shell>\n<parameter=command>\nmake test\n</parameter>\n</function>\n</tool_call>", "shell"},
		"Qwen Coder with code in a parameter":       {"<function=Write>\n<parameter=path>\nREADME.md\n</parameter>\n<parameter=content>\n# Title\n```go\nx := f()\n```\n</parameter>\n</function>", "Write"},
		"invoke":                                    {"<function_calls>\n<invoke name=\"Write\">\n<parameter name=\"path\">a</parameter>\n<parameter name=\"content\">b</parameter>\n</invoke>\n</function_calls>", "Write"},
		"invoke behind a stray word, indented":      {"course\n  <invoke name=\"get-weather\">\n  <parameter name=\"city\">Rome</parameter>\n  </invoke>", "get-weather"},
		"invoke with a namespace":                   {"<minimax:tool_call>\n<invoke name=\"shell\">\n<parameter name=\"command\">ls</parameter>\n</invoke>\n</minimax:tool_call>", "shell"},
		"invoke in a block of code":                 {"```xml\n<invoke name=\"shell\">\n  <parameter name=\"command\">npm test</parameter>\n</invoke>\n```", "shell"},
		"Mistral":                                   {"[TOOL_CALLS][{\"name\": \"get-weather\", \"arguments\": {\"city\": \"Rome\"}}]", "get-weather"},
		"Mistral with the name first":               {"[TOOL_CALLS]Read{\"path\": \"/a\"}", "Read"},
		"Mistral with the mark of arguments":        {"Sure.[TOOL_CALLS]shell[ARGS]{\"command\": \"ls\"}", "shell"},
		"Llama":                                     {"<|python_tag|>{\"name\": \"Shell\", \"parameters\": {\"command\": \"ls\"}}", "shell"},
		"Llama with a method":                       {"<|python_tag|>shell.call(command=\"ls\")", "shell"},
		"Llama with a function element":             {"<function=Read>{\"path\": \"/a\"}</function>", "Read"},
		"Llama in Python":                           {"[Read(path=\"/a\"), Read(path=\"/b\")]", "Read"},
		"DeepSeek":                                  {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>Write\n```json\n{\"path\": \"a\", \"content\": \"b\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "Write"},
		"DeepSeek of a later version":               {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>shell<｜tool▁sep｜>{\"command\": \"ls\"}<｜tool▁call▁end｜>", "shell"},
		"Kimi":                                      {"<|tool_calls_section_begin|><|tool_call_begin|>functions.odd__create_issue:0<|tool_call_argument_begin|>{\"title\": \"x\"}<|tool_call_end|><|tool_calls_section_end|>", "odd__create_issue"},
		"Kimi without special tokens":               {"functions.shell:3 {\"command\": \"ls\"}", "shell"},
		"harmony":                                   {"<|start|>assistant<|channel|>commentary to=functions.Read <|constrain|>json<|message|>{\"path\": \"/a\"}", "Read"},
		"harmony without special tokens":            {"assistantcommentary to=functions.Read json{\"path\": \"/a\"}", "Read"},
		"GLM":                                       {"<tool_call>Write\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n<arg_key>content</arg_key>\n<arg_value>b</arg_value>\n</tool_call>", "Write"},
		"Cohere":                                    {"<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"shell\", \"parameters\": {\"command\": \"ls\"}}]<|END_ACTION|>", "shell"},
		"Nemotron":                                  {"<TOOLCALL>[{\"name\": \"LS\", \"arguments\": {\"path\": \"/\"}}]</TOOLCALL>", "LS"},
		"Gemma":                                     {"```tool_code\nprint(default_api.Read(path=\"/a\"))\n```", "Read"},
		"Gemma of a later version":                  {"<|tool_call>call:Read{path:<|\"|>/a<|\"|>}<tool_call|>", "Read"},
		"InternLM":                                  {"<|action_start|><|plugin|>{\"name\": \"Shell\", \"parameters\": {\"command\": \"ls\"}}<|action_end|>", "shell"},
		"elements with the names of tool and parameters": {"I'll write it.\n<Write>\n<path>a</path>\n<content>\nb\n</content>\n</Write>", "Write"},
		"elements for the name and the input":            {"<tool_use>\n<name>Read</name>\n<input>{\"path\": \"/a\"}</input>\n</tool_use>", "Read"},
		"JSON alone":                                     {`{"name": "Shell", "arguments": {"command": "ls"}}`, "shell"},
		"JSON with parameters":                           {`{"name": "Read", "parameters": {"path": "/a"}}`, "Read"},
		"JSON with the tool and args":                    {`{"tool": "get-weather", "args": {"city": "Rome"}}`, "get-weather"},
		"JSON of Anthropic":                              {`{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "/a"}}`, "Read"},
		"JSON of OpenAI":                                 {`{"type": "function", "function": {"name": "Write", "arguments": "{\"path\": \"a\", \"content\": \"b\"}"}}`, "Write"},
		"an array of OpenAI":                             {`{"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "LS", "arguments": "{}"}}]}`, "LS"},
		"a list of calls":                                {`[{"name": "Read", "arguments": {"path": "/a"}}, {"name": "Read", "arguments": {"path": "/b"}}]`, "Read"},
		"JSON that was cut":                              {`{"name": "Write", "arguments": {"path": "a", "content": "# Rep`, "Write"},
		"JSON of a tool without parameters":              {`{"name": "time__now", "arguments": {}}`, "time__now"},
		"JSON with a thought":                            {`{"thought": "I need the list", "action": "LS", "action_input": {"path": "/"}}`, "LS"},
		"fenced JSON":                                    {"```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```", "Write"},
		"fenced JSON behind an intent":                   {"I have looked at everything. Now I'll write the report:\n\n```json\n{\n  \"name\": \"Write\",\n  \"arguments\": {\"path\": \"a\", \"content\": \"b\"}\n}\n```", "Write"},
		"JSON behind a sentence on the same line":        {"Here is the function call: {\"name\": \"Shell\", \"parameters\": {\"command\": \"ls\"}}", "shell"},
		"JSON with an invented result":                   {"{\"name\": \"Shell\", \"arguments\": {\"command\": \"make test\"}}\n\nResult: ok, 12 tests passed.\n\nAll tests pass.", "shell"},
		"markup with an invented result":                 {"<tool_call>\n{\"name\": \"Shell\", \"arguments\": {\"command\": \"make test\"}}\n</tool_call>\n<tool_response>\nok\n</tool_response>\n\nAll tests pass.", "shell"},
		"markup with an invented success":                {"<invoke name=\"Write\">\n<parameter name=\"path\">a</parameter>\n<parameter name=\"content\">b</parameter>\n</invoke>\n\nThe report is written to a.", "Write"},
		"fenced JSON with an invented result":            {"I'll run the tests.\n```json\n{\"name\": \"Shell\", \"arguments\": {\"command\": \"make test\"}}\n```\n**Output:**\n```\nok\n```\nAll tests pass.", "shell"},
		"fenced JSON with an invented success":           {"Let me write it.\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```\nThe report is written.", "Write"},
		"a function with keywords":                       {"I'll look at the file.\n\nRead(path=\"/workspace/a.go\", limit=10)", "Read"},
		"a function with an object":                      {"odd__create_issue({\"title\": \"It leaks\", \"body\": \"See (a).\"})", "odd__create_issue"},
		"a function behind a label":                      {"[Tool calls]: shell(command=\"ls -la\")", "shell"},
		"a name and its JSON":                            {"Let me check.\n\nshell {\"command\": \"ls\"}", "shell"},
		"a label, a name and JSON":                       {"Tool: Write\nArguments: {\"path\": \"a\", \"content\": \"b\"}", "Write"},
		"ReAct":                                          {"Thought: I need the list.\nAction: shell\nAction Input: ls -la", "shell"},
		"ReAct with an invented observation":             {"Thought: I need the list.\nAction: LS\nAction Input: {\"path\": \"/\"}\nObservation: a b c\nThought: I now know the answer.\nFinal Answer: three files", "LS"},
		"markup around a function":                       {"<tool_call>\nWrite(path=\"a\", content=\"b\")\n</tool_call>", "Write"},
		"markup that closes with a special token":        {"<|tool_call|>[{\"name\": \"Read\", \"arguments\": {\"path\": \"a\"}}]<|/tool_call|>", "Read"},
		"arguments as attributes":                        {"<tool_call name=\"Read\" path=\"/a\" />", "Read"},
		"an action in fenced JSON":                       {"Thought: I need the list.\nAction:\n```json\n{\"action\": \"shell\", \"action_input\": \"ls\"}\n```", "shell"},
		"a label in bold and fenced arguments":           {"**Tool Call:** Write\n```json\n{\"path\": \"a\", \"content\": \"b\"}\n```", "Write"},
		"a block of code with the name of the tool":      {"```shell\n{\"command\": \"ls\"}\n```", "shell"},
		"DeepSeek with a namespace":                      {"<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"Write\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", "Write"},
		"a dictionary of Python without a tag":           {"{'name': 'Write', 'arguments': {'path': 'a', 'content': 'it\\'s'}}", "Write"},
		"a list in special tokens":                       {"<|tool_call_start|>[Write(path=\"/a\", content=\"x\")]<|tool_call_end|>", "Write"},
		"several uses of tools":                          {`{"tool_uses": [{"recipient_name": "functions.Write", "parameters": {"path": "a", "content": "b"}}]}`, "Write"},
		"keys in camel case":                             {`{"toolName": "shell", "toolInput": {"command": "ls"}}`, "shell"},
		"an object with the name as its key":             {`{"Write": {"path": "a", "content": "b"}}`, "Write"},
		"an element with attributes":                     {"I'll write it.\n<Write path=\"a\" content=\"b\"/>", "Write"},
		"an element for the use of a tool":               {"<use_tool>\n<name>Write</name>\n<arguments>{\"path\": \"a\", \"content\": \"b\"}</arguments>\n</use_tool>", "Write"},
		"escaped markup":                                 {"&lt;tool_call&gt;{\"name\": \"LS\", \"arguments\": {}}&lt;/tool_call&gt;", "LS"},
		"a label in the past":                            {"[Called tool Write with {\"path\": \"a\", \"content\": \"b\"}]", "Write"},
		"an arrow, a name and JSON":                      {"→ Write {\"path\": \"a\", \"content\": \"b\"}", "Write"},
		"YAML":                                           {"tool: Write\narguments:\n  path: a\n  content: b", "Write"},
		"fenced JSON and a claim, in German":             {"Ich lege die Datei jetzt an:\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```\nDie Datei wurde angelegt.", "Write"},
		"fenced JSON and a claim, in Polish":             {"Zapisuję plik:\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```\nPlik jest gotowy.", "Write"},
		"an intent that speaks of an example":            {"I'll write an example config file as follows:\n<tool_call>\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n</tool_call>\nThe file was written.", "Write"},
		"a call with an unfitting argument":              {"<tool_call>{\"name\": \"Write\", \"arguments\": {\"file\": \"a\"}}</tool_call>", "Write"},
		"a call behind a long analysis":                  {strings.Repeat("The module has a fault in its parser.\n\n", 40) + "I will fix it.\n\n<function=Edit>\n<parameter=path>\na\n</parameter>\n</function>", "Edit"},
		"finish as text":                                 {"<tool_call>\n{\"name\": \"Finish\", \"arguments\": {\"text\": \"Done.\"}}\n</tool_call>", "finish"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := Find(tc.text, tools()); got.Name != tc.want {
				t.Errorf("Find() = %q, want %q in\n%s", got.Name, tc.want, tc.text)
			}
		})
	}
}

func TestFindIgnoresATextThatSpeaksOfCalls(t *testing.T) {
	for name, text := range map[string]string{
		"a result":                           "I wrote the report to /workspace/report.md with Write, and all tests pass.",
		"a tool that is not offered":         "<tool_call>\n{\"name\": \"search_flights\", \"arguments\": {\"to\": \"Rome\"}}\n</tool_call>",
		"JSON of a tool that is not offered": `{"name": "search_flights", "arguments": {"to": "Rome"}}`,
		"the tag in a sentence":              "vLLM finds the calls of Hermes models by <tool_call> and </tool_call>; Write is one of the tools.",
		"a tag in code within a line":        "Models of this family open a call with `<function=Write>` and close it with `</function>`.",
		"a whole call in code within a line": "The server returned `<tool_call>{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}</tool_call>` as text.",
		"a call in the middle of a sentence": "The model wrote <tool_call>{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}</tool_call> in its answer, so nothing ran.",
		"a call between words":               "Nothing ran, since <tool_call>{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}</tool_call> stood in the text.\n\nI told the owner of the server.",
		"JSON between words":                 "The entry {\"name\": \"Read\", \"arguments\": {\"path\": \"a\"}} was dropped from the log.",
		"a tag at the end of a sentence":     "The parser must look for <function=Write>.",
		"documentation with an example":      "## Write\n\nWrites a file. A call looks like this:\n\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```\n\nThe path may be relative.",
		"a text that a parser misses":        "The server's parser misses this:\n<tool_call>\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n</tool_call>\nand passes it on as text.",
		"how a model answers":                "A model calls a tool by answering:\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```",
		"steps to reproduce":                 "To reproduce, I sent this to the model:\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```\nThe server answered 400.",
		"a line of a log":                    "Here is what the log says at 12:01:\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```",
		"a prompt of before":                 "The old prompt had\n\n<invoke name=\"Write\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n\nand the new one has none.",
		"a table":                            "| form | example |\n|---|---|\n| Hermes | <tool_call>{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}</tool_call> |",
		"what callers write":                 "Callers now write:\n```python\nshell(command=\"make test\")\n```",
		"what a file has, in German":         "Die Datei enthält jetzt:\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```",
		"what a request has, in Spanish":     "La petición contiene ahora:\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```\nEl servidor respondió con 400.",
		"several paragraphs about a call":    "The bug is in the parser.\n\nIt reads one call only, and the second is lost. The recorded answer of the model:\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```\nAfter the fix both are read. I added a test with two calls, and one with a call that is not closed.",
		"documentation that ends with one":   "# Tools\n\nA call of `Write` has this format:\n\n```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```",
		"an example of markup, fenced":       "The Hermes template wraps each call, for example:\n\n```xml\n<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n```\n\nThe server parses it and removes it from the text.",
		"an example that is not fenced":      "Hermes models write calls like this:\n\n<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n\nvLLM parses them with --tool-call-parser hermes.",
		"a fenced call that is explained":    "The log of the run shows it:\n\n```\n{\"name\": \"Shell\", \"arguments\": {\"command\": \"rm -rf /tmp/x\"}}\n```\n\nThis call removed the directory, and the next one failed.",
		"a review that quotes code":          "The test builds the text by hand:\n\n```go\nwant := \"<tool_call>{\\\"name\\\": \\\"Write\\\", \\\"arguments\\\": {}}</tool_call>\"\nif got != want {\n```\n\nUse a helper here.",
		"a review that ends with code":       "The handler never returns the error. Suggested change:\n\n```python\ndef handle(call):\n    if call.name == \"shell\":\n        return run(call)\n```",
		"a review with a quotation":          "You asked about this line:\n\n> <tool_call>{\"name\": \"Write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}</tool_call>\n\nIt is the text of a call that no parser found.",
		"configuration with the name":        "```json\n{\"name\": \"Shell\", \"enabled\": true, \"timeout\": 30}\n```",
		"configuration without arguments":    `{"name": "Write"}`,
		"configuration with other keys":      `{"name": "Shell", "version": "1.2.0", "input": {"command": "make"}}`,
		"configuration with a list of tools": "{\"tools\": [\n  {\"name\": \"Read\", \"arguments\": {\"path\": \"a\"}},\n  {\"name\": \"LS\", \"arguments\": {}}\n]}",
		"configuration with steps":           "The pipeline is:\n```json\n{\n  \"steps\": [\n    {\"tool\": \"shell\", \"args\": {\"command\": \"make\"}}\n  ]\n}\n```",
		"the definition of a tool":           `{"name": "Write", "description": "Writes a file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}`,
		"the definition of a tool of OpenAI": "```json\n{\"type\": \"function\", \"function\": {\"name\": \"Write\", \"description\": \"Writes a file\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}}\n```",
		"the schema of the arguments":        `{"name": "Write", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}`,
		"a policy":                           "spec:\n  tools:\n    - name: shell\n      arguments: {command: ls}\n  rules:\n    - action: Deny",
		"data with the name of a tool":       `{"name": "Read", "arguments": {"pages": 12, "language": "en"}}`,
		"a list of tools in prose":           "The agent has these tools:\n\n- Write(path, content): writes a file\n- Read(path): reads a file\n- shell(command): runs a command",
		"a signature":                        "The function is declared as\n\nRead(path: str, limit: int = 100) -> str\n\nin tools.py.",
		"a call in code":                     "```go\nfunc main() {\n\tdata := Read(\"a\")\n\tfmt.Println(data)\n}\n```",
		"a shell command":                    "Run this to see the files:\n\n```shell\nls -la\n```",
		"HTML":                               "```html\n<button class=\"call\">Write</button>\n```",
		"an action in minutes":               "Decision: we ship on Friday.\nAction: Read the contract.\nOwner: Ann",
		"ReAct in prose":                     "ReAct models answer with lines such as \"Action: shell\" and \"Action Input: ls\", which the framework parses.",
		"a summary of what was done":         "Done:\n1. Read: /a\n2. Write: /b {2 sections}\n3. shell: make test (exit code 0)",
		"a report with results":              "Tool calls: 3\nResults:\n- Read: 12 lines\n- shell: ok",
		"a plain object":                     `{"result": "ok", "files": ["a", "b"]}`,
		"empty":                              "",
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := Find(text, tools()); ok {
				t.Errorf("Find() = %q, want none in\n%s", got.Name, text)
			}
		})
	}
}
