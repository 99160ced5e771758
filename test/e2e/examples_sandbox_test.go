//go:build e2e

package e2e

import (
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// goTest is a module with a test that passes, as a command line makes it.
const goTest = `mkdir app && cd app && go mod init example.com/app 2>/dev/null && printf 'package app\n\nimport "testing"\n\nfunc TestIt(t *testing.T) {}\n' > app_test.go`

// sandboxExamples are about what runs in the sandbox, and what begins there.
var sandboxExamples = map[string]example{
	"shell.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Shell", args{"command": goTest})),
			does(call("Shell", args{"command": "pwd; echo $CGO_ENABLED; go test ./..."})),
			does(call("Shell", args{"command": "exit 3"})),
			does(call("Shell", args{"command": "echo here > index.html; python3 -m http.server 8000", "background": true})),
			does(call("Shell", args{"command": "for i in $(seq 600); do curl -s http://localhost:8000/ && break; sleep 0.1; done"})),
			does(call("ShellKill", args{"id": "job-1"})),
			does(call("Read", args{"path": "app/index.html"})),
			does(call("Shell", args{"command": "seq 20000"})),
			does(call("Grep", args{"pattern": "^12345$", "path": "/results", "output_mode": "content"})),
			says("The last says: {{.LastToolResult}}"),
		)},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("shell"), "12345")
			got := s.results("shell", "Shell")
			s.has("the module", got[0].Text(), "[The working directory is /workspace/app now.]", "exit code: 0")
			s.has("the test", got[1].Text(), "/workspace/app\n0\n", "ok  \texample.com/app", "exit code: 0")
			s.has("an exit code", got[2].Text(), "exit code: 3")
			s.has("the server", got[3].Text(), "Started in the background as job-1.", "still running")
			s.has("what it serves", got[4].Text(), "here\n", "exit code: 0")
			s.has("its end", s.results("shell", "ShellKill")[0].Text(), "killed: canceled")
			s.has("the file", s.results("shell", "Read")[0].Text(), "here")
			s.has("a long output", got[5].Text(), "1\n2\n3\n", "19999\n20000\n", "/results/s16c1.out", "exit code: 0")
			c := s.runs["shell"].Status.Progress.Confinement
			if c == nil || c.Process != "Enforced" || c.Files != "Enforced" || c.Network == "Unenforced" {
				s.t.Errorf("commands are confined so: %+v", c)
			}
		},
	},
	"python.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Python", args{"code": "tides = [3.1, 4.5, 2.9]\nmax(tides)"})),
			does(call("Python", args{"code": "sum(tides) / 0"})),
			does(call("Python", args{"code": "print(round(sum(tides), 1))\ntides.append(5.2)\nlen(tides)"})),
			does(call("Python", args{"code": "import sys\nprint(max(float(x) for x in sys.argv[1:]))", "save_as": "highest", "args": []string{"1", "2"}})),
			does(call("Python", args{"script": "highest", "args": []string{"2.5", "7.25"}})),
			does(call("Python", args{"code": "'tides' in globals()", "session": "other"})),
			does(call("Python", args{"code": "'tides' in globals()", "restart": true})),
			says("Done."),
		)},
		check: func(s *exampleFixture) {
			s.says("python")
			got := s.results("python", "Python")
			for i, want := range []string{"4.5", "ZeroDivisionError", "10.5\n4", "2.0", "7.25", "False", "False"} {
				s.has("call "+got[i].CallID, got[i].Text(), want)
			}
			if got[1].IsError {
				s.t.Errorf("an exception of the code is a failure of the tool: %s", got[1].Text())
			}
		},
	},
	"files.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Read", args{"path": "rules/berths.md"})),
			does(call("Write", args{"path": "plan.md", "content": "Berth 8 for the Aurora.\n"})),
			does(call("Shell", args{"command": "cat rules/colors.md && tar czf plan.tgz plan.md"})),
			says("Packed."),
		)},
		check: func(s *exampleFixture) {
			s.says("files")
			s.has("the rules", s.results("files", "Read")[0].Text(), "Berth 8: up to 120 m.")
			s.has("the other file", s.results("files", "Shell")[0].Text(), "The Aurora is blue.", "exit code: 0")
			var made []string
			for _, f := range s.runs["files"].Status.Progress.Result.Files {
				made = append(made, f.Path)
			}
			if len(made) != 2 || !strings.Contains(strings.Join(made, " "), "/workspace/plan.md") || !strings.Contains(strings.Join(made, " "), "/workspace/plan.tgz") {
				s.t.Errorf("what came of it is %q", made)
			}
		},
	},
	"policy.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Write", args{"path": ".github/workflows/ci.yaml", "content": "on: push"})),
			does(call("Shell", args{"command": "mkdir -p dist build && ls"})),
			does(call("Shell", args{"command": "rm -rf dist build"})),
			does(call("Shell", args{"command": "ls"})),
			says("Tidy: {{.LastToolResult}}"),
		)},
		person: func(s *exampleFixture) {
			run := s.awaits("policy", requestFor("s6c1", "rm -rf dist build"))
			s.has("what is asked", run.Status.Progress.Pending[0].Args, "rm -rf dist build")
			s.has("the message", succeeded(run), "AwaitingApproval", "May I call Shell with", "Is it only build output?", "type: Deny")
			s.decides("decisions/deny.yaml")
		},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("policy"), "build\ndist\n")
			denied := s.results("policy", "Write")[0]
			s.has("the rule", denied.Text(), "pipelines-are-ours", "Pipelines are not yours to change.")
			said := s.results("policy", "Shell")
			s.has("what is allowed", said[0].Text(), "exit code: 0")
			s.has("the denial", said[1].Text(), "Keep what is in dist, it is released.")
			if !denied.IsError || !said[1].IsError {
				s.t.Error("a call that was denied is no error")
			}
			s.decided("policy", "policy."+requestFor("s6c1", "rm -rf dist build"))
		},
	},
	"egress.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Shell", args{"command": "curl -s http://example.com/; curl -s http://pages/; curl -s -o /dev/null -w '%{http_code}\\n' https://example.com/"})),
			does(call("Shell", args{"command": "curl --noproxy '*' -sS -m 5 http://pages/; curl --noproxy '*' -sS -m 5 http://169.254.169.254/; env | grep -i proxy | sort"})),
			says("Done."),
		)},
		check: func(s *exampleFixture) {
			s.says("egress")
			got := s.results("egress", "Shell")
			s.has("the proxy", got[0].Text(), "example.com at port 80 is not among the hosts that this sandbox may reach",
				"pages leads to no public address")
			s.has("the way past it", got[1].Text(), "HTTP_PROXY=http://127.0.0.1:", "NO_PROXY=localhost,127.0.0.1,::1")
			s.lacks("the way past it", got[1].Text(), "HTTP/1")
			want := &v1alpha1.Refused{Connections: 3, Hosts: []v1alpha1.RefusedHost{
				{Host: "example.com", Port: 80, Reason: v1alpha1.RefusedNotListed, Count: 1, FirstID: "s2c1"},
				{Host: "pages", Port: 80, Reason: v1alpha1.RefusedNotPublic, Count: 1, FirstID: "s2c1"},
				{Host: "example.com", Port: 443, Reason: v1alpha1.RefusedNotListed, Count: 1, FirstID: "s2c1"},
			}}
			if diff := cmp.Diff(want, s.runs["egress"].Status.Progress.Refused); diff != "" {
				s.t.Errorf("status.progress.refused -want +got:\n%s", diff)
			}
			if requests := s.requestsWith("GET pages/"); len(requests) != 0 {
				s.t.Errorf("a host of the cluster was reached: %+v", requests)
			}
		},
	},
	"ask-form.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Ask", args{"question": "How shall the Aurora be painted?", "schema": args{
				"type": "object", "required": []string{"hull", "coats"},
				"properties": args{"hull": args{"type": "string", "enum": []string{"red", "blue"}}, "coats": args{"type": "integer", "maximum": 4}},
			}})),
			says("I paint it: {{.LastToolResult}}"),
		)},
		person: func(s *exampleFixture) {
			run := s.awaits("ask-form", "s2c1")
			s.has("the form", run.Status.Progress.Pending[0].Schema, `"enum":["red","blue"]`)
			s.decides("decisions/form.yaml")
		},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("ask-form"), `"hull": "blue"`)
			s.decided("ask-form", "ask-form.s2c1")
		},
	},
}
