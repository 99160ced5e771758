package policy_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/policy"
)

func TestARelativePathInARuleForFileToolsIsAMistake(t *testing.T) {
	kinds := policy.ToolKinds{"Write": policy.Files, "Read": policy.Files, "Glob": policy.Files, "Bash": policy.Shell, "acme__*": policy.Plain}
	const hint = `rule 1 "r": when, column `
	const github = ` is relative, and args.path of a file tool is always absolute; write "/workspace/.github/"`
	cases := map[string]struct {
		when  string
		tools []string
		want  string
	}{
		"the start of a path":                {`tool == "Write" && args.path.startsWith(".github/")`, nil, hint + `41: ".github/" is relative, and args.path of a file tool is always absolute; write "/workspace/.github/"`},
		"several tools":                      {`tool in ["Read", "Write"] && args.path == "./go.mod"`, nil, hint + `43: "./go.mod" is relative, and args.path of a file tool is always absolute; write "/workspace/go.mod"`},
		"a list of paths":                    {`args.path in ["b", "c"]`, []string{"Glob"}, hint + `15: "b" is relative, and args.path of a file tool is always absolute; write "/workspace/b"`},
		"an index":                           {`tool == "Write" && args["path"].startsWith(".github/")`, nil, hint + `44: ".github/"` + github},
		"in lower case":                      {`tool == "Write" && args.path.lowerAscii().startsWith(".github/")`, nil, hint + `54: ".github/"` + github},
		"a pattern":                          {`tool == "Write" && args.path.matches("^[.]github/")`, nil, hint + `38: "^[.]github/" is relative, and args.path of a file tool is always absolute; write "^/workspace/[.]github/"`},
		"a pattern of two":                   {`tool == "Write" && args.path.matches("^(\\.a|b)/")`, nil, hint + `38: "^(\\.a|b)/" is relative, and args.path of a file tool is always absolute; write "^/workspace/(\\.a|b)/"`},
		"a path that is there":               {`tool == "Write" && has(args.path) && args.path.startsWith(".github/")`, nil, hint + `59: ".github/"` + github},
		"two relative paths":                 {`tool == "Write" && (args.path.startsWith(".github/") || args.path == "x")`, nil, hint + `42: ".github/"` + github},
		"both spellings":                     {`tool in ["Write", "Read"] && (args.path.startsWith("/workspace/.github/") || args.path.startsWith(".github/"))`, nil, ""},
		"both spellings, by their part":      {`tool == "Write" && (args.path.startsWith(".github/") || args.path.contains("/.github/"))`, nil, ""},
		"both spellings, by an index":        {`tool == "Write" && (args.path.startsWith(".github/") || args["path"].lowerAscii().contains("/.github/"))`, nil, ""},
		"both spellings in a list":           {`args.path in ["/workspace/a", "b"]`, []string{"Glob"}, ""},
		"both spellings in a pattern":        {`tool == "Write" && args.path.matches("^(/workspace/)?[.]github/")`, nil, ""},
		"a pattern of any place":             {`tool == "Write" && args.path.matches("[.]github/")`, nil, ""},
		"a pattern of absolute paths":        {`tool == "Write" && args.path.matches("^/workspace/")`, nil, ""},
		"a pattern of all but slashes":       {`tool == "Write" && args.path.matches("^.github/")`, nil, ""},
		"an absolute path":                   {`tool == "Write" && args.path.startsWith("/workspace/.github/")`, nil, ""},
		"a part of a path":                   {`tool == "Write" && args.path.contains(".github/")`, nil, ""},
		"a tool whose paths may be relative": {`tool == "acme__get" && args.path.startsWith("docs/")`, nil, ""},
		"one of several is of another kind":  {`tool in ["Read", "acme__get"] && args.path.startsWith("docs/")`, nil, ""},
		"any tool":                           {`args.path.startsWith("docs/")`, nil, ""},
		"all but a file tool":                {`tool != "Read" && args.path.startsWith("docs/")`, nil, ""},
		"another argument":                   {`tool == "Glob" && args.pattern.startsWith("docs/")`, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Compile([]policy.Rule{{Name: "r", Tools: tc.tools, When: tc.when, Answer: policy.Deny}}, kinds)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Compile() = %q, want %q", got, tc.want)
			}
			if _, err := policy.Compile([]policy.Rule{{Name: "r", Tools: tc.tools, When: tc.when, Answer: policy.Deny}}, nil); err != nil {
				t.Errorf("a runner refuses it: %v", err)
			}
		})
	}
}
