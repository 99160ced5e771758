package policy_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/policy"
)

func TestRulesByFormerNamesAreRefused(t *testing.T) {
	all := []policy.Former{{Was: "shell", Is: "Shell", IsThere: true}, {Was: "shell_output", Is: "ShellOutput", IsThere: true}, {Was: "recall", Is: "Recall"}}
	for when, want := range map[string]string{
		"tool == 'shell'":                                      `rule 1 "r": when, column 9: the tool shell is called Shell: write 'Shell'`,
		"'shell' != tool":                                      "write 'Shell'",
		"tool in ['Read', 'shell_output']":                     "write 'ShellOutput'",
		"args.x == 1 && !(tool == 'recall')":                   "write 'Recall'",
		"tool == 'sh' + 'ell'":                                 "this holds for shell, as",
		"['shell', 'Read'].exists(t, t == tool)":               "write 'Shell'",
		"!['recall'].all(t, t != tool)":                        "write 'Recall'",
		"['Shell', 'Read'].exists(t, t == tool)":               "",
		"['Shell'].all(t, t != tool)":                          "",
		"['shell'].exists(t, t == args.kind)":                  "",
		"tool.startsWith('sh')":                                "this holds for shell, as the tool Shell was called, and not for Shell",
		"tool.matches('^(?:shell|python)$')":                   "this holds for shell, as",
		"tool.contains('hell_')":                               "this holds for shell_output",
		"tool.endsWith('_output') && args.x == 'a'":            "this holds for shell_output",
		"has(args.command) && tool.matches('^[a-z_]+$')":       "this holds for shell, as",
		"!tool.startsWith('shell')":                            "column 17: this holds for shell",
		"args.x == 1 && tool.lowerAscii() == 'shell_output'":   "this holds for shell_output",
		"tool.lowerAscii() != 'shell_output'":                  "this holds for shell_output",
		"tool.lowerAscii() != 'shelloutput'":                   "",
		"tool != 'Shell' && !tool.startsWith('Sh')":            "",
		"tool == 'Shell' && shell.runs('rm')":                  "",
		"tool.lowerAscii() == 'shell'":                         "",
		"tool.startsWith('github__')":                          "",
		"tool.startsWith('re')":                                "",
		"args.tool == 'shell'":                                 "",
		"run.labels['tier'] == 'shell' && agent.name == 'ask'": "",
		"tool ==": "",
		"":        "",
	} {
		err := policy.CheckFormerNames([]policy.Rule{{Name: "r", When: when, Answer: policy.Deny}}, all)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
	}
}
