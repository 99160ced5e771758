package policylint_test

import (
	"errors"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/revision/policylint"
	"github.com/deckhand-dev/deckhand/internal/shared/policy"
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
		"an optional argument":               {`tool == 'Write' && args.?path.orValue('').startsWith('.github/')`, nil, hint + `54: ".github/"` + github},
		"an optional index":                  {`tool == 'Write' && args[?'path'].orValue('') == '.github/'`, nil, hint + `49: ".github/" is relative, and args.path of a file tool is always absolute; write "/workspace/.github"`},
		"what stands for an absent argument": {`tool == 'Write' && args.?path.orValue('none') == 'none'`, nil, ""},
		"in lower case":                      {`tool == "Write" && args.path.lowerAscii().startsWith(".github/")`, nil, hint + `54: ".github/"` + github},
		"a pattern":                          {`tool == "Write" && args.path.matches("^[.]github/")`, nil, hint + `38: "^[.]github/" is relative, and args.path of a file tool is always absolute; write "^/workspace/[.]github/"`},
		"a pattern of two":                   {`tool == "Write" && args.path.matches("^(\\.a|b)/")`, nil, hint + `38: "^(\\.a|b)/" is relative, and args.path of a file tool is always absolute; write "^/workspace/(\\.a|b)/"`},
		"a path that is there":               {`tool == "Write" && has(args.path) && args.path.startsWith(".github/")`, nil, hint + `59: ".github/"` + github},
		"two relative paths":                 {`tool == "Write" && (args.path.startsWith(".github/") || args.path == "x")`, nil, hint + `42: ".github/"` + github},
		"both spellings":                     {`tool in ["Write", "Read"] && (args.path.startsWith("/workspace/.github/") || args.path.startsWith(".github/"))`, nil, ""},
		"both spellings, by their part":      {`tool == "Write" && (args.path.startsWith(".github/") || args.path.contains("/.github/"))`, nil, ""},
		"both spellings, by an index":        {`tool == "Write" && (args.path.startsWith(".github/") || args["path"].lowerAscii().contains("/.github/"))`, nil, ""},
		"both spellings in a list":           {`args.path in ["/workspace/b", "b"]`, []string{"Glob"}, ""},
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
			_, err := policylint.Compile([]policy.Rule{{Name: "r", Tools: tc.tools, When: tc.when, Answer: policy.Deny}}, kinds)
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

// refused is what Compile says of a condition, without the rule and the place.
func refused(when string, kinds policy.ToolKinds) string {
	_, err := policylint.Compile([]policy.Rule{{Name: "r", When: when, Answer: policy.Deny}}, kinds)
	if e, ok := errors.AsType[*policy.Error](err); ok {
		return e.Message
	}
	return ""
}

func TestALiteralThatNoCanonicalArgumentEqualsIsAMistake(t *testing.T) {
	const path = ` never matches: args.path of a file tool is canonical; write `
	const relative = ` is relative, and args.path of a file tool is always absolute; write `
	const url = ` never matches: args.url is canonical; write `
	const method = ` never matches: args.method is in upper case; write `
	kinds := policy.ToolKinds{"Read": policy.Files, "Write": policy.Files, "Bash": policy.Shell, "think": policy.Other, "HTTPRequest": policy.Web, "Browse": policy.Web}
	for when, want := range map[string]string{
		// Paths.
		`tool == "Write" && args.path.startsWith("/workspace//.github/")`:                       `"/workspace//.github/"` + path + `"/workspace/.github/"`,
		`args.path.startsWith("/workspace/./x")`:                                                `"/workspace/./x"` + path + `"/workspace/x"`,
		`args.path.startsWith("/workspace/a/../x/")`:                                            `"/workspace/a/../x/"` + path + `"/workspace/x/"`,
		`args.path.startsWith("//workspace/x")`:                                                 `"//workspace/x"` + path + `"/workspace/x"`,
		`args.path == "/workspace/x/"`:                                                          `"/workspace/x/"` + path + `"/workspace/x"`,
		`"/workspace/./x" == args.path`:                                                         `"/workspace/./x"` + path + `"/workspace/x"`,
		`args.path == ""`:                                                                       `""` + relative + `"/workspace"`,
		`args.path != "/workspace/x/"`:                                                          `"/workspace/x/"` + path + `"/workspace/x"`,
		`args.path in ["/workspace/a", "/workspace/b/"]`:                                        `"/workspace/b/"` + path + `"/workspace/b"`,
		`!args.path.startsWith("docs/")`:                                                        `"docs/"` + relative + `"/workspace/docs/"`,
		`args.path.startsWith(".")`:                                                             `"."` + relative + `"/workspace/."`,
		`args.path.startsWith("./")`:                                                            `"./"` + relative + `"/workspace/"`,
		`args.path.lowerAscii().startsWith("/workspace/Docs/")`:                                 `"/workspace/Docs/" never matches: lowerAscii leaves no upper case; write "/workspace/docs/"`,
		`args.path.startsWith("/workspace//docs/") && !args.path.endsWith(".md")`:               `"/workspace//docs/"` + path + `"/workspace/docs/"`,
		`args.path.startsWith("/workspace/a/") || args.path.startsWith("/workspace//b/")`:       `"/workspace//b/"` + path + `"/workspace/b/"`,
		`args.path.startsWith("/workspace/docs/") && !args.path.startsWith("/workspace//docs")`: `"/workspace//docs"` + path + `"/workspace/docs"`,
		`args.path.startsWith("/workspace/b/") || args.path.startsWith("/workspace//b/")`:       ``,
		`args.path.startsWith("/workspace/") && !args.path.startsWith("/workspace//docs")`:      `"/workspace//docs"` + path + `"/workspace/docs"`,
		`!args.path.startsWith("docs/") && !args.path.startsWith("/workspace/docs/")`:           ``,
		`args.path != "/workspace/b" && args.path != "/workspace/b/"`:                           ``,
		`!(args.path == "/workspace/b" || args.path == "b")`:                                    ``,
		`args.path == "/workspace/b" && args.path != "/workspace/b/"`:                           `"/workspace/b/"` + path + `"/workspace/b"`,
		`args.path.startsWith("/workspace/.")`:                                                  ``,
		`args.path.startsWith("/workspace/..")`:                                                 ``,
		`args.path.startsWith("/workspace/")`:                                                   ``,
		`args.path.startsWith("/workspace/a b/ü…")`:                                             ``,
		`args.path.startsWith("/")`:                                                             ``,
		`args.path.startsWith("")`:                                                              ``,
		`args.path == "/"`:                                                                      ``,
		`args.path == "/workspace/.github"`:                                                     ``,
		`args.path.lowerAscii() == "/workspace/.github"`:                                        ``,
		`args.path.contains("//")`:                                                              ``,
		`args.path.matches("^/workspace//x")`:                                                   ``,
		`args.path.startsWith(args.prefix)`:                                                     ``,

		// Which tools a place is about.
		`args.path.startsWith(".github/")`:                                                                                                       `".github/"` + relative + `"/workspace/.github/"`,
		`tool != "Bash" && args.path.startsWith(".github/")`:                                                                                     `".github/"` + relative + `"/workspace/.github/"`,
		`has(args.path) && args.path.matches("^[.]github/")`:                                                                                     `"^[.]github/"` + relative + `"^/workspace/[.]github/"`,
		`tool == "Read" && args.path == "/workspace/x" || tool == "Write" && args.path == "x"`:                                                   `"x"` + relative + `"/workspace/x"`,
		`tool == "Read" ? args.path == "x" : false`:                                                                                              `"x"` + relative + `"/workspace/x"`,
		`args.all.exists(x, x == 1 && args.path.startsWith("x/"))`:                                                                               `"x/"` + relative + `"/workspace/x/"`,
		`tool == "Bash" && args.path.startsWith(".github/")`:                                                                                     ``,
		`tool == "Read" && tool == "Write" && args.path.startsWith(".github/")`:                                                                  ``,
		`tool != "Read" && tool != "Write" && args.path == "x"`:                                                                                  ``,
		`!(tool in ["Read", "Write"]) && args.path == "x"`:                                                                                       ``,
		`tool == "Write" && args.path.startsWith(".github/") || tool == "HTTPRequest" && args.url.startsWith("https://example.com/")`:            `".github/"` + relative + `"/workspace/.github/"`,
		`tool == "Write" && args.path.startsWith("/workspace/x/") || tool == "HTTPRequest" && args.url.startsWith("https://example.com:443/")`:   `"https://example.com:443/"` + url + `"https://example.com/"`,
		`tool == "Write" && args.path.startsWith("/workspace/x/") || tool != "Write" && has(args.path) && args.path.startsWith("/workspace//x")`: `"/workspace//x"` + path + `"/workspace/x"`,

		// URLs.
		`tool == "HTTPRequest" && args.url.startsWith("http://pages.x:80/admin/")`:       `"http://pages.x:80/admin/"` + url + `"http://pages.x/admin/"`,
		`args.url.startsWith("https://Example.com:443/")`:                                `"https://Example.com:443/"` + url + `"https://example.com/"`,
		`args.url == "https://example.com"`:                                              `"https://example.com"` + url + `"https://example.com/"`,
		`args.url in ["https://example.com/", "https://example.com/a#top"]`:              `"https://example.com/a#top"` + url + `"https://example.com/a"`,
		`args.url != "HTTPS://example.com/"`:                                             `"HTTPS://example.com/"` + url + `"https://example.com/"`,
		`args.url.startsWith("https://example.com/a/../b")`:                              `"https://example.com/a/../b"` + url + `"https://example.com/b"`,
		`args.url.startsWith("https://example.com/%2f")`:                                 `"https://example.com/%2f"` + url + `"https://example.com/%2F"`,
		`args["url"].startsWith("https://münchen.example/")`:                             `"https://münchen.example/"` + url + `"https://xn--mnchen-3ya.example/"`,
		`args.url.startsWith("example.com/")`:                                            `"example.com/" never matches: its scheme is ""; write the whole URL, beginning with https:// or http://`,
		`args.url.startsWith("/admin/")`:                                                 `"/admin/" never matches: its scheme is ""; write the whole URL, beginning with https:// or http://`,
		`args.url.startsWith("https://me@example.com/")`:                                 `"https://me@example.com/" never matches: it has a user or password before the host; send an Authorization header instead`,
		`args.url.lowerAscii().startsWith("https://example.com/Admin")`:                  `"https://example.com/Admin" never matches: lowerAscii leaves no upper case; write "https://example.com/admin"`,
		`args.url.startsWith("http")`:                                                    ``,
		`args.url.startsWith("https://api.exam")`:                                        ``,
		`args.url.startsWith("https://example.com:44")`:                                  ``,
		`args.url.startsWith("http://10.1.")`:                                            ``,
		`args.url.startsWith("http://[fd00:")`:                                           ``,
		`args.url.startsWith("https://example.com:8443/a/.")`:                            ``,
		`args.url.startsWith("https://example.com/a%")`:                                  ``,
		`args.url.startsWith("https://example.com/?q=%C3")`:                              ``,
		`args.url == "https://example.com/"`:                                             ``,
		`args.url.lowerAscii().startsWith("https://example.com/%2f")`:                    ``,
		`args.url.contains("Example.com:443")`:                                           ``,
		`args.url.matches("^HTTPS://")`:                                                  ``,
		`args.url.startsWith("http://x:80/") || args.url.startsWith("http://x/")`:        ``,
		`args.url.startsWith("http://x:80/") || args.url.matches("^https?://x(:80)?/$")`: ``,

		// Methods.
		`args.method == "post"`: `"post"` + method + `"POST"`,
		`tool == "HTTPRequest" && args.url.contains("x") && args.method in ["PUT", "Post"]`: `"Post"` + method + `"POST"`,
		`args.method.startsWith("p")`:        `"p"` + method + `"P"`,
		`args.method != "get"`:               `"get"` + method + `"GET"`,
		`args.method != "GET"`:               ``,
		`args.method.startsWith("P")`:        ``,
		`args.method.lowerAscii() == "post"`: ``,
		`args.method.lowerAscii() == "POST"`: `"POST" never matches: lowerAscii leaves no upper case; write "post"`,
	} {
		if got := refused(when, kinds); got != want {
			t.Errorf("%s\n\t%s, want\n\t%s", when, got, want)
		}
		if got := refused(when, nil); got != "" {
			t.Errorf("%s: a runner refuses it: %s", when, got)
		}
	}
}

// What the arguments of a server's tools mean is not known here.
func TestAPathThatFileToolsDoNotReachIsAMistake(t *testing.T) {
	kinds := policy.ToolKinds{"Read": policy.Files, "Write": policy.Files, "acme__get": policy.Plain}
	const outside = ` is outside of what file tools reach, which is below /workspace, /tmp, /results and /memories; write `
	for when, want := range map[string]string{
		`args.path.startsWith('/.github')`:                 `"/.github"` + outside + `"/workspace/.github"`,
		`args.path.startsWith('/etc/')`:                    `"/etc/"` + outside + `"/workspace/etc/"`,
		`args.path == '/go.mod'`:                           `"/go.mod"` + outside + `"/workspace/go.mod"`,
		`args.path in ['/workspace/a', '/work']`:           `"/work"` + outside + `"/workspace/work"`,
		`args.path.startsWith('/tmpfile')`:                 `"/tmpfile"` + outside + `"/workspace/tmpfile"`,
		`args.path.startsWith('/workspaces/x')`:            `"/workspaces/x"` + outside + `"/workspace/workspaces/x"`,
		`args.path == '/'`:                                 "",
		`args.path.startsWith('/')`:                        "",
		`args.path.startsWith('/work')`:                    "",
		`args.path.startsWith('/tmp/x')`:                   "",
		`args.path == '/results'`:                          "",
		`args.path.startsWith('/memories/notes')`:          "",
		`args.path in ['/workspace/work', '/work']`:        "",
		`args.path.contains('/etc/')`:                      "",
		`args.path.matches('^/etc/')`:                      "",
		`args.path == '/x' || args.path == '/workspace/x'`: "",
	} {
		if got := refused("tool in ['Read', 'Write'] && ("+when+")", kinds); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		if got := refused("tool == 'acme__get' && ("+when+")", kinds); got != "" {
			t.Errorf("%s, of a tool whose paths are not known: %q", when, got)
		}
	}
}

func TestALiteralForAToolOfUnknownArgumentsIsNoMistake(t *testing.T) {
	kinds := policy.ToolKinds{"Write": policy.Files, "HTTPRequest": policy.Web, "acme__*": policy.Plain}
	for when, want := range map[string]bool{
		`args.path.startsWith(".github/")`:                                             true,
		`args.url == "example.com"`:                                                    true,
		`args.method == "get"`:                                                         true,
		`tool == "acme__get" && args.path.startsWith(".github/")`:                      true,
		`tool != "Write" && args.path == "x"`:                                          true,
		`tool == "Write" || args.path == "x"`:                                          true,
		`tool == "Write" && args.path == "x"`:                                          false,
		`tool == "HTTPRequest" && args.method == "get"`:                                false,
		`tool != "Write" || args.path == "x"`:                                          false,
		`(tool == "acme__get" || tool == "Write") && args.path == "x"`:                 true,
		`tool == "acme__get" && args.path == "x" || tool == "Write" && args.url == ""`: true,
	} {
		if got := refused(when, kinds); (got == "") != want {
			t.Errorf("%s: %q", when, got)
		}
	}
}
