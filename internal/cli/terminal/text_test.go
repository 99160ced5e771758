package terminal

import "testing"

func TestArgumentsHaveShortEscapes(t *testing.T) {
	for text, want := range map[string]string{
		`"a\u000ab\u000D\u0009"`: `"a\nb\r\t"`,
		`"\\u000a\\\u000a"`:      `"\\u000a\\\n"`,
		`"\u202e\"\u00e4\n"`:     `"\u202e\"\u00e4\n"`,
		`"not JSON \u00`:         `"not JSON \u00`,
		`\`:                      `\`,
	} {
		if got := shortEscapes(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}
