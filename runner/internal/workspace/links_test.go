package workspace_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A repository may bring symbolic links. The policy judges the file that they lead
// to, not the path that the model writes.
func TestALinkThatTheRepositoryBringsIsJudgedOnTheFile(t *testing.T) {
	s := serve(t, map[string]string{
		".github/workflows/ci.yml": "on: push\n",
		"src/main.go":              "package main\n",
		"ci":                       "-> .github/workflows",
		"ci.yml":                   "-> .github/workflows/ci.yml",
		"src/hub":                  "-> ../.github",
		"code":                     "-> src",
		"out":                      "-> /etc",
	})
	p := newPlace(t, s.git())
	p.fetch(t)
	d, err := disk.Open(p.dir)
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	var write tool.Tool
	for _, one := range files.Over(backend.New(d, nil), files.View{Root: "/workspace"}).Tools() {
		if one.Name == files.NameWrite {
			write = one
		}
	}
	rules, err := policy.Compile([]policy.Rule{{Name: "ci-is-ours", When: `tool == "Write" && args.path.startsWith("/workspace/.github/")`, Answer: policy.Deny}}, nil)
	must(t, err)
	got := map[string]string{}
	want := map[string]string{
		".github/workflows/evil.yml":                `Deny {"content":"x","path":"/workspace/.github/workflows/evil.yml"}`,
		"/workspace//.github/./workflows//evil.yml": `Deny {"content":"x","path":"/workspace/.github/workflows/evil.yml"}`,
		"ci/evil.yml":                     `Deny {"content":"x","path":"/workspace/.github/workflows/evil.yml"}`,
		"ci.yml":                          `Deny {"content":"x","path":"/workspace/.github/workflows/ci.yml"}`,
		"code/hub/workflows/new/evil.yml": `Deny {"content":"x","path":"/workspace/.github/workflows/new/evil.yml"}`,
		"code/main.go":                    `Allow {"content":"x","path":"/workspace/src/main.go"}`,
		"out/passwd":                      "refused",
	}
	for path := range want {
		args, refused := write.CanonicalArgs(t.Context(), json.RawMessage(fmt.Sprintf(`{"path":%q,"content":"x"}`, path)))
		if refused != nil {
			got[path] = "refused"
			continue
		}
		v := rules.Decide(t.Context(), policy.Call{Tool: files.NameWrite, Args: args})
		got[path] = fmt.Sprintf("%s %s", v.Answer, args)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
