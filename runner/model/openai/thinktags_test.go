package openai

import (
	"strings"
	"testing"
)

func TestThinkingAtTheStartOfATextIsThinking(t *testing.T) {
	cases := map[string]struct{ content, thinking, text string }{
		"thinking and a text":                  {"<think>\nHm.\n</think>\n\nHi.", "\nHm.\n", "Hi."},
		"space before it":                      {" \n<think>Hm.</think>Hi.", "Hm.", "Hi."},
		"thinking alone":                       {"<think>Hm.</think>", "Hm.", ""},
		"thinking that was cut":                {"<think>Hm. </th", "Hm. </th", ""},
		"no thinking inside":                   {"<think>\n\n</think>\n\nHi.", "\n\n", "Hi."},
		"marks in the thinking":                {"<think>a <think> b < / c </ think> </think>Hi.", "a <think> b < / c </ think> ", "Hi."},
		"a mark in the text":                   {"The mark is <think>x</think>.", "", "The mark is <think>x</think>."},
		"a mark in the text, after thinking":   {"<think>Hm.</think>See <think>x</think>.", "Hm.", "See <think>x</think>."},
		"something that is nearly a mark":      {"<thinking>Hm.</thinking>", "", "<thinking>Hm.</thinking>"},
		"what may become a mark and does not":  {" <th", "", " <th"},
		"space alone":                          {" \n ", "", " \n "},
		"space is kept where nobody thinks":    {"\n  Hi. ", "", "\n  Hi. "},
		"much space is not waited through":     {strings.Repeat(" ", 100) + "<think>x</think>", "", strings.Repeat(" ", 100) + "<think>x</think>"},
		"nothing":                              {"", "", ""},
		"characters of several bytes, in both": {"<think>äöü 日本</think>✓ ü", "äöü 日本", "✓ ü"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(tc.content)+1; size++ {
				thinking, text := inlined(tc.content, size)
				if thinking != tc.thinking || text != tc.text {
					t.Errorf("in pieces of %d: thinking %q, text %q", size, thinking, text)
				}
			}
		})
	}
}

// inlined is what content in pieces amounts to.
func inlined(content string, size int) (thinking, text string) {
	var n thinkTagParser
	for content != "" {
		k := min(size, len(content))
		a, b := n.read(content[:k])
		thinking, text, content = thinking+a, text+b, content[k:]
	}
	a, b := n.end()
	return thinking + a, text + b
}
