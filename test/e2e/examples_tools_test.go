//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// toolExamples are about what an agent may do.
var toolExamples = map[string]example{
	"http-request.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("HTTPRequest", args{"method": "GET", "url": "http://pages/berths?free=true"})),
			does(
				call("HTTPRequest", args{"method": "POST", "url": "http://pages/berths/7", "body": `{"ship":"Aurora"}`, "headers": args{"X-Harbor": "north"}}),
				call("HTTPRequest", args{"method": "GET", "url": "http://169.254.169.254/latest/meta-data/"}),
				call("HTTPRequest", args{"method": "GET", "url": "http://pages/out"}),
			),
			says("Booked."),
		)},
		pages: map[string]page{
			"GET pages/berths":    {ContentType: "application/json", Body: `{"free":[7,9]}`},
			"POST pages/berths/7": {Status: 201, ContentType: "application/json", Body: `{"booked":7}`},
			"GET pages/out":       {Status: 302, Headers: map[string]string{"Location": "http://search/secret"}},
		},
		check: func(s *exampleFixture) {
			s.says("http-request")
			results := s.results("http-request", "HTTPRequest")
			s.has("the list", results[0].Text(), "HTTP 200", `{"free":[7,9]}`)
			s.has("the booking", results[1].Text(), "HTTP 201", `{"booked":7}`)
			for what, r := range map[string]step.Step{"the metadata service": results[2], "a redirect to another host": results[3]} {
				if !r.IsError {
					s.t.Errorf("%s was reached: %s", what, r.Text())
				}
			}
			requests := s.requestsWith("POST pages/berths/7")
			if len(requests) != 1 || requests[0].Body != `{"ship":"Aurora"}` || requests[0].Header["X-Harbor"] == nil || requests[0].Header["Idempotency-Key"] == nil {
				s.t.Errorf("the server was asked %+v", requests)
			}
			if got := s.requestsWith("GET search/"); len(got) != 0 {
				s.t.Errorf("a host that is not listed was asked %+v", got)
			}
		},
	},
	"result-files.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(
				call("Write", args{"path": "tides.csv", "content": "06:12,high"}),
				call("Write", args{"path": "reports/today.md", "content": "High at six."}),
				call("Write", args{"path": "notes.txt", "content": "Ask the pilot."}),
			),
			says("Written."),
		)},
		check: func(s *exampleFixture) {
			s.says("result-files")
			types := s.newShell()
			printed := types("cd $(mktemp -d) && kubectl deckhand cp result-files:. . 2>/dev/null && grep -r . .")
			s.has("what is copied", printed, "tides.csv:06:12,high", "reports/today.md:High at six.")
			s.lacks("what is copied", printed, "notes.txt")
		},
	},
	"web-search.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("WebSearch", args{"query": "largest harbor of Europe", "maxResults": 3})),
			says("I found: {{.LastToolResult}}"),
		)},
		pages: map[string]page{"POST search/search": {ContentType: "application/json", Body: `{
			"answer": "It is Rotterdam.",
			"results": [{"title": "Ports of Europe", "url": "https://ports.example/europe", "content": "Rotterdam is the largest.", "score": 0.98}]}`}},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("web-search"), "It is Rotterdam.", "https://ports.example/europe", "Rotterdam is the largest.")
			requests := s.requestsWith("POST search/search")
			if len(requests) != 1 || requests[0].Header["Authorization"][0] != "Bearer "+key {
				s.t.Fatalf("the search was asked %+v", requests)
			}
			s.has("the question", requests[0].Body, `"query":"largest harbor of Europe"`, `"max_results":3`)
		},
	},
	"browse.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Browse", args{"url": "http://pages/"})),
			says("It says: {{.LastToolResult}}"),
		)},
		pages: map[string]page{"GET pages/{$}": {ContentType: "text/html", Body: `<!DOCTYPE html><html><head><title>Harbor</title><script>alert(1)</script></head>
			<body><h1>The harbor</h1><p>Open <b>all night</b>, see the <a href="/berths">berths</a>.</p></body></html>`}},
		check: func(s *exampleFixture) {
			got := s.says("browse")
			s.has("the page", got, "# The harbor", "**all night**", "http://pages/berths")
			s.lacks("the page", got, "<p>", "alert(1)")
		},
	},
	"output.yaml": {
		models: map[string]modeltest.Dialogue{"gpt-4.1-mini": turns(
			does(call("Think", args{"thought": "It has a rhythm."})),
			says("I would give it an eight."),
			does(call("Finish", args{"score": 11, "reasons": []string{"rhythm"}})),
			does(call("Finish", args{"score": 8, "reasons": []string{"rhythm"}})),
		)},
		check: func(s *exampleFixture) {
			s.ended("output", "True Finished")
			if got := s.runs["output"].Status.Progress.Result.Output; got != `{"reasons":["rhythm"],"score":8}` {
				s.t.Errorf("the output is %s", got)
			}
			if got := len(s.events("output", step.EventNudged)); got != 1 {
				s.t.Errorf("it was told %d times how to end", got)
			}
			s.has("what is wrong with 11", s.results("output", "Finish")[0].Text(), "score", "10")
		},
	},
	"reject.yaml": {
		models: map[string]modeltest.Dialogue{"gpt-5-mini": turns(does(call("Reject", args{"reason": "This is no text to translate."})))},
		check: func(s *exampleFixture) {
			s.has("the message", message(s.ended("reject", "False Rejected")), "This is no text to translate.")
		},
	},
	"parallel-calls.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(
				call("HTTPRequest", args{"method": "GET", "url": "http://pages/1"}), call("HTTPRequest", args{"method": "GET", "url": "http://pages/2"}),
				call("HTTPRequest", args{"method": "GET", "url": "http://pages/3"}), call("HTTPRequest", args{"method": "GET", "url": "http://pages/4"}),
				call("Write", args{"path": "a.txt", "content": "one two"}),
			),
			does(call("Edit", args{"path": "a.txt", "old_string": "one", "new_string": "1"}), call("Edit", args{"path": "a.txt", "old_string": "two", "new_string": "2"})),
			does(call("Read", args{"path": "a.txt"})),
			says("It says: {{.LastToolResult}}"),
		)},
		pages: map[string]page{
			"pages/1": {Body: "Alfa", DelayMS: 5000}, "pages/2": {Body: "Bravo", DelayMS: 600},
			"pages/3": {Body: "Charlie", DelayMS: 300}, "pages/4": {Body: "Delta"},
		},
		check: func(s *exampleFixture) {
			s.has("the file", s.says("parallel-calls"), "1 2")
			second := s.requestsWith("POST models/parallel-calls-claude/")[1].Body
			at := -1
			for _, text := range []string{"Alfa", "Bravo", "Charlie", "Delta", "Created"} {
				if next := strings.Index(second, text); next > at {
					at = next
				} else {
					s.t.Errorf("%q is not in the order of the calls: %s", text, second)
				}
			}
			fourth, first := s.ofCall("parallel-calls", step.EventCallStarted, "s2c4"), s.ofCall("parallel-calls", step.EventCallFinished, "s2c1")
			if fourth.N > first.N {
				s.t.Errorf("the fourth call began as event %d, after the first had ended as %d", fourth.N, first.N)
			}
		},
	},
}

// ofCall is the event of one type that is about a call.
func (s *exampleFixture) ofCall(run string, of step.EventType, id string) events.Line {
	s.t.Helper()
	for _, e := range s.events(run, of) {
		var data struct{ ID string }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			s.t.Fatal(err)
		}
		if data.ID == id {
			return e
		}
	}
	s.t.Fatalf("no event %s of the call %s", of, id)
	return events.Line{}
}
