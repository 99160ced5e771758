//go:build e2e

package e2e

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// toolsetExamples are about tools that come from somewhere else.
var toolsetExamples = map[string]example{
	"toolset-http.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("harbor__read_resource", args{"uri": "harbor://rules"}), call("harbor__berths", args{})),
			does(call("harbor__book", args{"berth": 8, "ship": "Aurora"})),
			does(call("harbor__book", args{"berth": "eight"})),
			does(call("harbor__close_harbor", args{})),
			does(call("harbor__berths", args{})),
			says("So it is: {{.LastToolResult}}"),
		)},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("toolset-http"), "berth 7: free\nberth 8: Aurora\nberth 9: free")
			s.has("the rules", s.results("toolset-http", "harbor__read_resource")[0].Text(), "No ship of more than 90 m at berth 7.")
			booked := s.results("toolset-http", "harbor__book")
			s.has("the booking", booked[0].Text(), "berth 8 is Aurora's now")
			s.has("a call that does not fit", booked[1].Text(), "berth", "ship")
			if closed := s.results("toolset-http", "harbor__close_harbor")[0]; !closed.IsError {
				s.t.Errorf("a tool that is denied was called: %s", closed.Text())
			}
			requests := s.requestsWith("POST harbor/mcp")
			if len(requests) == 0 || requests[0].Header["Authorization"][0] != "Bearer "+key || requests[0].Header["X-Team"][0] != "deckhand" {
				s.t.Errorf("the server was asked %+v", requests)
			}
			s.lacks("the log", s.log(s.t.Context(), "toolset-http-1"), key)
		},
	},
	"toolset-stdio.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("everything__get-sum", args{"a": 19, "b": 23}), call("everything__echo", args{"message": "ahoy"})),
			does(call("everything__get-env", args{})),
			does(call("Shell", args{"command": "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep TOKEN; ls /deckhand"})),
			says("Done."),
		)},
		person: func(s *exampleFixture) {
			pod := s.pod(s.runs["toolset-stdio"], 1)
			with := map[string]bool{}
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				with[c.Name] = slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "SERVICE_TOKEN" })
			}
			if !with["mcp-everything"] || with["sandbox"] || with["runner"] || len(with) != 4 {
				s.t.Errorf("containers with the token: %v", with)
			}
		},
		check: func(s *exampleFixture) {
			s.says("toolset-stdio")
			s.has("the sum", s.results("toolset-stdio", "everything__get-sum")[0].Text(), "42")
			s.has("the echo", s.results("toolset-stdio", "everything__echo")[0].Text(), "ahoy")
			if env := s.results("toolset-stdio", "everything__get-env")[0]; !env.IsError {
				s.t.Errorf("a tool that is not allowed was called: %s", env.Text())
			}
			s.lacks("what the shell finds", s.results("toolset-stdio", "Shell")[0].Text(), "SERVICE_TOKEN", key, "servers")
			s.lacks("the log", s.log(s.t.Context(), "toolset-stdio-1"), key)
		},
	},
	"toolset-sandbox.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("folder__write_file", args{"path": "/workspace/aurora.md", "content": "The Aurora is 95 m long.\n"})),
			does(call("folder__list_directory", args{"path": "/workspace"}), call("folder__list_directory", args{"path": "/home/agent"})),
			does(call("Read", args{"path": "aurora.md"})),
			says("It says: {{.LastToolResult}}"),
		)},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("toolset-sandbox"), "The Aurora is 95 m long.")
			listed := s.results("toolset-sandbox", "folder__list_directory")
			s.has("the folder", listed[0].Text(), "aurora.md")
			if !listed[1].IsError {
				s.t.Errorf("the server serves another folder: %s", listed[1].Text())
			}
			pod := &corev1.Pod{}
			if err := cluster.admin.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: "toolset-sandbox-1"}, pod); err != nil {
				s.t.Fatal(err)
			}
			for _, c := range pod.Spec.InitContainers {
				if strings.HasPrefix(c.Name, "mcp-") {
					s.t.Errorf("the server has a container of its own: %s", c.Name)
				}
			}
			files := s.runs["toolset-sandbox"].Status.Progress.Result.Files
			if len(files) != 1 || files[0].Path != "/workspace/aurora.md" {
				s.t.Errorf("what came of it is %+v", files)
			}
		},
	},
	"requests.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("berths__show", args{"berth": "7/B?lang=fr"})),
			does(call("berths__show", args{"berth": "7", "from": "2026-11-22", "with": []string{"power", "water"}}), call("berths__show", args{"berth": 7, "path": "/admin"})),
			does(call("berths__book", args{"berth": "7", "ship": `Aurora", "free": true, "x": "`, "length": 95})),
			does(call("berths__book", args{"berth": "7", "ship": "Aurora", "length": 0})),
			says("It says: {{.LastToolResult}}"),
		)},
		pages: map[string]page{
			"GET harbor/api/berths/7":  {ContentType: "application/json", Body: `{"berth":"7","free":true}`},
			"POST harbor/api/bookings": {Status: 201, ContentType: "application/json", Body: `{"booked":"7"}`},
			"GET harbor/api/berths/":   {Status: 404, Body: "no such berth"},
		},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("requests"), "length")
			shown := s.results("requests", "berths__show")
			s.has("a berth that is not there", shown[0].Text(), "HTTP 404", "no such berth")
			s.has("a berth", shown[1].Text(), "HTTP 200", `"free":true`)
			if !shown[2].IsError {
				s.t.Errorf("arguments that are not in the schema are taken: %s", shown[2].Text())
			}
			s.has("the booking", s.results("requests", "berths__book")[0].Text(), "HTTP 201")
			gets := s.requestsWith("GET harbor/api/")
			if len(gets) != 2 || gets[0].Path != "/api/berths/7%2Fb%3Flang=fr?lang=en" && gets[0].Path != "/api/berths/7%2Fb%3Flang%3Dfr?lang=en" || gets[0].Header["X-Api-Key"][0] != key {
				s.t.Errorf("the server was asked %+v", gets)
			}
			s.has("the second request", gets[1].Path, "/api/berths/7?from=2026-11-22&lang=en&with=power%2Cwater")
			posts := s.requestsWith("POST harbor/api/")
			if len(posts) != 1 || posts[0].Header["Idempotency-Key"] == nil {
				s.t.Fatalf("the server was asked %+v", posts)
			}
			s.has("the body", posts[0].Body, `"ship":{"length":95,"name":"Aurora\", \"free\": true, \"x\": \""}`, `"berth":"7"`)
			s.lacks("the log", s.log(s.t.Context(), "requests-1"), key)
		},
	},
}
