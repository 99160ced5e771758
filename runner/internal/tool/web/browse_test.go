package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

func TestBrowse(t *testing.T) {
	cases := map[string]struct {
		media, body string
		want        string // URL stands for the address
	}{
		"a page": {
			"text/html", `<title>The  title</title><nav>menu</nav><h1>A</h1><p>Some <a href="/b">text</a>.</p>`,
			"# The title\nURL/x\n\n# A\n\nSome [text](URL/b).\n\n[characters 0 to 38 of 38]",
		},
		"a page in another charset": {"text/html; charset=windows-1251", "<p>\xcf\xf0\xe8\xe2\xe5\xf2", "URL/x\n\nПривет\n\n[characters 0 to 6 of 6]"},
		"plain text":                {"text/plain", "<b> a\n", "URL/x\n\n<b> a\n\n[characters 0 to 6 of 6]"},
		"JSON":                      {"application/json", `{"a": 1}`, "URL/x\n\n{\"a\": 1}\n\n[characters 0 to 8 of 8]"},
		"a page without text":       {"text/html", `<div id=root></div><script>x()</script>`, "Error: URL/x cannot be read: there is no text on the page\n- It may be made by scripts, which are not run. Look for an API behind it, or for another source."},
		"a PDF":                     {"application/pdf", "%PDF-1.4", "Error: URL/x cannot be read: it is no text, but application/pdf, 8 bytes\n- Look for the same content as a web page or a text."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasPrefix(r.Header.Get("Accept"), "text/html") || r.UserAgent() != "Deckhand" || r.Method != http.MethodGet {
					t.Errorf("asked with %s %v", r.Method, r.Header)
				}
				w.Header().Set("Content-Type", tc.media)
				io.WriteString(w, tc.body)
			})
			to := browse(t, Options{Allow: here})
			got := strings.ReplaceAll(call(t, to, map[string]any{"url": s.URL + "/x"}).Render(), s.URL, "URL")
			want := tc.want
			if strings.Contains(want, "(URL/b)") { // whose length is not ours to know
				n := len("# A\n\nSome [text](/b).") + len(s.URL)
				want = strings.ReplaceAll(want, "38", fmt.Sprint(n))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if e := to.EffectOf(nil); e != tool.ReadOnly {
				t.Errorf("the effect is %s", e)
			}
		})
	}
}

// Whoever reads on reads the same page, which is not asked for again.
func TestBrowseInParts(t *testing.T) {
	var text strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&text, "line %d é\n", i)
	}
	var seen atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		if r.URL.Path == "/long" {
			io.WriteString(w, strings.Repeat("é", window+10))
			return
		}
		io.WriteString(w, text.String())
	})
	to := browse(t, Options{Allow: here})
	var all strings.Builder
	offset, parts := 0, 0
	for more := true; more; parts++ {
		got := call(t, to, map[string]any{"url": s.URL, "offset": offset}).Render()
		body := strings.TrimPrefix(got, s.URL+"/\n\n")
		at := strings.LastIndex(body, "\n\n[characters ")
		if at < 0 {
			t.Fatalf("no end in:\n%s", got)
		}
		all.WriteString(body[:at] + "\n")
		var from, end, total int
		if n, _ := fmt.Sscanf(body[at+2:], "[characters %d to %d of %d", &from, &end, &total); n != 3 || from != offset || end-from > window {
			t.Fatalf("the end is %s", body[at+2:])
		}
		more = strings.HasSuffix(got, fmt.Sprintf("; next_offset: %d]", end))
		offset = end
	}
	if all.String() != text.String() {
		t.Error("the parts are not the page")
	}
	if parts < 4 || seen.Load() != 1 {
		t.Errorf("%d parts were %d requests", parts, seen.Load())
	}
	has(t, call(t, to, map[string]any{"url": s.URL, "offset": offset}).Render(), "exceeds the page")
	call(t, to, map[string]any{"url": s.URL})
	if seen.Load() != 2 {
		t.Error("a page that is read from its start is not asked for anew")
	}
	has(t, call(t, to, map[string]any{"url": s.URL + "/long"}).Render(), "[characters 0 to 20000 of 20010; next_offset: 20000]")
	has(t, call(t, to, map[string]any{"url": s.URL + "/long", "offset": 20000}).Render(), "éééééééééé\n\n[characters 20000 to 20010 of 20010]")
	has(t, call(t, to, map[string]any{"url": s.URL + "/long", "offset": -5}).Render(), "[characters 0 to 20000")
}

func TestBrowseAPageThatIsTooLong(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		line := []byte(strings.Repeat("<p>words, more words and other words</p>", 10_000))
		for {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	to := browse(t, Options{Allow: here})
	call(t, to, map[string]any{"url": s.URL})
	has(t, call(t, to, map[string]any{"url": s.URL, "offset": 1_830_000}).Render(), "[cut: the first 2048 KiB; there is more]")
}

func TestBrowseStatuses(t *testing.T) {
	for code, want := range map[int]string{
		http.StatusNotFound:            "answered 404 Not Found\n- Check how the address is written",
		http.StatusForbidden:           "answered 403 Forbidden\n- The page is not public",
		http.StatusTooManyRequests:     "(the server says Retry-After: 120)",
		http.StatusInternalServerError: "- The server has a problem",
		http.StatusTeapot:              "- See what the server says with HTTPRequest",
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			http.Error(w, "a page of its own", code)
		})
		got := call(t, browse(t, Options{Allow: here}), map[string]any{"url": s.URL}).Render()
		has(t, got, "Error: "+s.URL+" cannot be read: the server ", want)
	}
	has(t, call(t, browse(t, Options{}), map[string]any{"url": "example.com"}).Render(), "write the whole URL")
}
