package textcall

import "testing"

const leaked = "I'll write the file now.\n<tool_call>\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a.md\", \"content\": \"# A\"}}\n</tool_call>"

func TestACallThatThePromptAskedForIsRequested(t *testing.T) {
	const json = "```json\n{\"name\": \"Write\", \"arguments\": {\"path\": \"a.md\", \"content\": \"# A\"}}\n```"
	for name, tc := range map[string]struct {
		text, prompt, instructions string
		want                       bool
	}{
		"work":                                   {leaked, "Do it.", "You do what is asked.", false},
		"work that names the tool":               {leaked, "Use Write to write the report to a.md.", "", false},
		"work that wants a tool call":            {leaked, "Make a tool call to Write with the report, then show me the result.", "", false},
		"work with JSON":                         {json, "Write a summary of config.json to a.md, and show the format of the file.", "", false},
		"work on code with calls":                {leaked, "Explain which function calls main.go makes, in a.md.", "", false},
		"work on a trace of tool calls":          {leaked, "Summarize the tool calls in trace.log. Show the slowest.", "", false},
		"work with the tool's name as a verb":    {leaked, "Write the document report.md and use the style of the others.", "", false},
		"work that lists functions":              {leaked, "Read the docs, print a list of every function used, Write it to report.md.", "", false},
		"work on a lost tool call":               {leaked, "Fix the parser, write report.md and explain how the tool call was lost.", "", false},
		"work on leaked markup":                  {leaked, "Our server leaks <tool_call> tags. Find out why and put the result into report.md.", "", false},
		"work on a parser of calls":              {leaked, "Write the tool call parser, and show a test of it.", "", false},
		"work on lost calls, in German":          {leaked, "Der Tool-Aufruf geht verloren. Finde heraus, warum.", "", false},
		"work that speaks of calling Write":      {leaked, "Explain in report.md who calls Write and what it is used for.", "", false},
		"the prompt asks what a call is":         {json, "Explain what a tool call is, with an example.", "", true},
		"the prompt asks for its syntax":         {leaked, "What is the syntax of a tool call in Hermes?", "", true},
		"the prompt asks for one, in German":     {json, "Zeig mir einen Tool-Aufruf als JSON.", "", true},
		"instructions for the markup":            {leaked, "Do it.", "When you need a tool, answer with <tool_call>{json}</tool_call>.", false},
		"instructions for a format with actions": {"Action: shell\nAction Input: ls", "Do it.", "Use this format:\nThought: …\nAction: the tool\nAction Input: its input\nObservation: the result", false},
		"the prompt asks by the markup":          {leaked, "Wie sieht ein <tool_call> für Write aus?", "", true},
		"the prompt asks for an example":         {json, "Write an example of a tool call in JSON.", "", true},
		"the prompt asks how a call looks":       {json, "How does a call of Write look? Show the JSON.", "", true},
		"the prompt asks to convert a call":      {json, "Convert this tool call of Anthropic to the form of OpenAI: …", "", true},
		"the prompt asks to show a call":         {json, "Show me a call of Write, without executing it.", "", true},
		"the instructions ask for examples":      {leaked, "Go on.", "You write the documentation of tools. Show one tool call as <tool_call> on each page.", true},
	} {
		t.Run(name, func(t *testing.T) {
			call, ok := Find(tc.text, tools())
			if !ok {
				t.Fatal("no call found")
			}
			if got := call.IsRequested([]string{tc.prompt}, tc.instructions); got != tc.want {
				t.Errorf("IsRequested() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestACallThatTheModelWasGivenIsAQuotation(t *testing.T) {
	call, ok := Find(leaked, tools())
	if !ok {
		t.Fatal("no call found")
	}
	for given, want := range map[string]bool{
		"Repeat exactly: <tool_call>{\"name\":\"Write\",\"arguments\":{\"path\":\"a.md\",\"content\":\"# A\"}}</tool_call>": true,
		"1→<tool_call>\n2→{\"name\": \"Write\", \"arguments\": {\"path\": \"a.md\", \"content\": \"# A\"}}\n3→</tool_call>": true,
		"Repeat exactly: <tool_call>{\"name\":\"Write\",\"arguments\":{\"path\":\"b.md\",\"content\":\"# A\"}}</tool_call>": false,
		"Write # A to a.md": false,
		"":                  false,
	} {
		if got := call.IsQuotation([]string{"Look at this.", given}); got != want {
			t.Errorf("IsQuotation(%q) = %t, want %t", given, got, want)
		}
	}
}
