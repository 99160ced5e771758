package config

import (
	"encoding/json"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/web"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A rule that denies a URL denies each way to write it, or the call is refused.
func TestEverySpellingOfADeniedURLIsDenied(t *testing.T) {
	rules, err := policy.Compile([]policy.Rule{
		{Name: "not-theirs", When: `args.url.startsWith("http://denied.example/")`, Answer: policy.Deny},
		{Name: "not-inside", When: `args.url.matches("^https?://10[.]")`, Answer: policy.Deny},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	request, err := web.HTTPRequest(web.Options{})
	if err != nil {
		t.Fatal(err)
	}
	browse, err := web.Browse(web.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{
		"http://denied.example/", "http://denied.example", "HTTP://DENIED.example/a", "http://denied.example./a", "http://denied.example:80/a", "http://denied.example:/a",
		" http://denied.example/a", "http://ｄｅｎｉｅｄ.example/a", "http://denied。example/a", "http://denied.example。/a", "http://den\u00adied.example/a", "http://denied.example?a", "http://x@denied.example/", `http:\\denied.example/`, "http://denied.exa\tmple/",
		"http://10.0.0.1/", "http://[::ffff:10.0.0.1]/", "http://[::ffff:a00:1]/", "http://[0:0:0:0:0:FFFF:A00:1]:80/", "http://167772161/", "http://0xa.1/", "http://012.0.0.1/", "http://10.1/", "http://１０.0.0.1/", "http://10.0.0.1./",
	} {
		for name, made := range map[string]tool.Tool{`{"method":"GET","url":`: request, `{"url":`: browse} {
			quoted, err := json.Marshal(url)
			if err != nil {
				t.Fatal(err)
			}
			args, refused := made.CanonicalArgs(t.Context(), json.RawMessage(name+string(quoted)+"}"))
			if refused != nil {
				continue
			}
			if v := rules.Decide(t.Context(), policy.Call{Tool: made.Name, Args: args}); v.Answer != policy.Deny {
				t.Errorf("%s with %q: %s, for the policy saw %s", made.Name, url, v.Answer, args)
			}
		}
	}
}
