package policy_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
)

func TestRulesByFormerNamesAreRefused(t *testing.T) {
	all := []policy.Former{{Was: "shell", Is: "Shell", IsThere: true}, {Was: "shell_output", Is: "ShellOutput", IsThere: true}, {Was: "recall", Is: "Recall"}}
	for when, want := range map[string]string{
		"tool == 'shell'":                                       `rule 1 "r": when, column 9: the tool shell is called Shell: write 'Shell'`,
		"'shell' != tool":                                       "write 'Shell'",
		"tool in ['Read', 'shell_output']":                      "write 'ShellOutput'",
		"args.x == 1 && !(tool == 'recall')":                    "write 'Recall'",
		"tool == 'sh' + 'ell'":                                  "this holds for shell, as",
		"['shell', 'Read'].exists(t, t == tool)":                "write 'Shell'",
		"!['recall'].all(t, t != tool)":                         "write 'Recall'",
		"['Shell', 'Read'].exists(t, t == tool)":                "",
		"['Shell'].all(t, t != tool)":                           "",
		"['shell'].exists(t, t == args.kind)":                   "",
		"tool.startsWith('sh')":                                 "this holds for shell, as the tool Shell was called, and not for Shell",
		"tool.matches('^(?:shell|python)$')":                    "this holds for shell, as",
		"tool.contains('hell_')":                                "this holds for shell_output",
		"tool.endsWith('_output') && args.x == 'a'":             "this holds for shell_output",
		"has(args.command) && tool.matches('^[a-z_]+$')":        "this holds for shell, as",
		"!tool.startsWith('shell')":                             "column 17: this holds for shell",
		"args.x == 1 && tool.lowerAscii() == 'shell_output'":    "this holds for shell_output",
		"tool.lowerAscii() != 'shell_output'":                   "this holds for shell_output",
		"tool.lowerAscii() != 'shelloutput'":                    "",
		"tool != 'Shell' && !tool.startsWith('Sh')":             "",
		"tool == 'Shell' && shell.runs('rm')":                   "",
		"tool.lowerAscii() == 'shell'":                          "",
		"tool.startsWith('github__')":                           "",
		"tool.startsWith('re')":                                 "",
		"args.tool == 'shell'":                                  "",
		"tool in (run.user == 'root' ? [] : ['shell'])":         "column 37: the tool shell is called Shell: write 'Shell'",
		"tool == (agent.depth > 0 ? 'shell' : 'Read')":          "write 'Shell'",
		"tool + '/' + agent.name == 'shell/lead'":               "write 'Shell'",
		"[tool, agent.name] == ['recall', 'lead']":              "write 'Recall'",
		"(tool + ' ' + args.command).startsWith('shell rm')":    "write 'Shell'",
		"{'shell': agent.name == 'lead'}[?tool].orValue(false)": "write 'Shell'",
		"(agent.depth > 0 ? tool : 'shell_output') == args.x":   "write 'ShellOutput'",
		"[tool, agent.name] == ['Shell', 'lead']":               "",
		"[tool, agent.name] == ['shell-fixer', 'lead']":         "",
		"tool == 'Shell' && args['shell'] && args.x == 'shell'": "",
		"(args.x == 'shell' ? tool : 'Read') == agent.name":     "",
		"run.labels['tier'] == 'shell' && agent.name == 'ask'":  "",
		"tool ==": "",
		"":        "",
	} {
		err := policy.CheckFormerNames([]policy.Rule{{Name: "r", When: when, Answer: policy.Deny}}, all)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
	}
}

// A tool may be called as another one was, if only this other one is not there: a rule by this name would
// not decide about the tool that it was written for.
func TestWhichFormerNamesMayBeUsed(t *testing.T) {
	former := map[string]string{"Shell": "shell", "Recall": "recall"}
	for names, want := range map[string]string{
		"":                    "write 'Shell'. A tool of your own must not be called shell",
		"Read Shell":          "write 'Shell'",
		"shell":               "",
		"shell Shell":         "write 'Shell', and give the other tool that is called shell another name",
		"recall shell Read":   "",
		"recall Shell lookup": "write 'Shell'",
	} {
		err := policy.CheckFormerNames([]policy.Rule{{Name: "r", When: "tool == 'shell'", Answer: policy.Deny}}, policy.FormerOf(former, strings.Fields(names)))
		if (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("of an agent with the tools %q: %v, want %q", names, err, want)
		}
	}
}

func TestNamesThatToolIsComparedWithAreRenamed(t *testing.T) {
	all := []policy.Former{{Was: "shell", Is: "Shell"}, {Was: "shell_output", Is: "ShellOutput"}}
	for when, want := range map[string]string{
		`tool == 'shell'`: `tool == 'Shell'`,
		`"shell" != tool && tool == "shell_output"`:    `"Shell" != tool && tool == "ShellOutput"`,
		`tool in ['shell', 'Read', "shell_output"]`:    `tool in ['Shell', 'Read', "ShellOutput"]`,
		`args.path == 'ä' && tool == 'shell'`:          `args.path == 'ä' && tool == 'Shell'`,
		`args.command == 'shell'`:                      `args.command == 'shell'`,
		`args.command == "tool == 'shell'"`:            `args.command == "tool == 'shell'"`,
		`tool.startsWith('shell')`:                     `tool.startsWith('shell')`,
		`['shell'].exists(t, t == tool)`:               `['shell'].exists(t, t == tool)`,
		`tool == 'python'`:                             `tool == 'python'`,
		`tool ==`:                                      `tool ==`,
		`tool == 's\x68ell'`:                           `tool == 's\x68ell'`,
		"tool == 'shell' ||\n  tool == 'shell_output'": "tool == 'Shell' ||\n  tool == 'ShellOutput'",
	} {
		if got := policy.WithNamesOfToday(when, all); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
}
