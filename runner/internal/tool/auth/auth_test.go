package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A world is hosts by name, and what they were sent.
type world struct {
	hosts map[string]http.Handler
	seen  []string // host, path, and what was shown
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(strings.NewReader(body))
	}
	w.seen = append(w.seen, strings.TrimSpace(fmt.Sprintf("%s %s%s %s%s %s", r.Method, r.URL.Host, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), body)))
	h, ok := w.hosts[r.URL.Scheme+"://"+r.URL.Host]
	if !ok {
		return nil, errors.New("no such host")
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

// keys are those of a Secret.
func keys(of map[string]string) func(task.SecretKey) (string, error) {
	return func(k task.SecretKey) (string, error) {
		value, ok := of[k.Secret+"/"+k.Key]
		if !ok {
			return "", errors.New("there is no such file")
		}
		return value, nil
	}
}

// client speaks for a Toolset at http://api.test/v1 in a world.
func client(t *testing.T, w *world, o Options) *http.Client {
	t.Helper()
	if o.URL == nil {
		o.URL, _ = url.Parse("http://api.test/v1")
	}
	return Client(&http.Client{Transport: w}, o)
}

func get(t *testing.T, c *http.Client, method, to, body string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

func fine(http.ResponseWriter, *http.Request) {}

func TestWhatIsShown(t *testing.T) {
	secret := keys(map[string]string{"s/api-key": " k-12345678\n", "s/token": "t-12345678", "s/username": "ann", "s/password": "p:w"})
	cases := map[string]struct {
		auth *task.Auth
		want string
	}{
		"nothing":           {nil, "GET api.test/v1"},
		"a bearer token":    {&task.Auth{Type: task.AuthBearer, Secret: "s"}, "GET api.test/v1 Bearer k-12345678"},
		"another key of it": {&task.Auth{Type: task.AuthBearer, Secret: "s", Key: "token"}, "GET api.test/v1 Bearer t-12345678"},
		"a header":          {&task.Auth{Type: task.AuthHeader, Secret: "s", Header: "X-API-Key"}, "GET api.test/v1 k-12345678"},
		"a user":            {&task.Auth{Type: task.AuthBasic, Secret: "s"}, "GET api.test/v1 Basic YW5uOnA6dw=="},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{hosts: map[string]http.Handler{"http://api.test": http.HandlerFunc(fine)}}
			if _, err := get(t, client(t, w, Options{Auth: tc.auth, Key: secret}), "GET", "http://api.test/v1", ""); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want}, w.seen); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotSent(t *testing.T) {
	cases := map[string]struct {
		auth *task.Auth
		keys map[string]string
		want string
	}{
		"a key that is missing":     {&task.Auth{Type: task.AuthBearer, Secret: "s"}, nil, "reading the key api-key of the Secret s: there is no such file"},
		"a key that is empty":       {&task.Auth{Type: task.AuthBearer, Secret: "s"}, map[string]string{"s/api-key": " \n"}, "the key api-key of the Secret s is empty"},
		"a key of two lines":        {&task.Auth{Type: task.AuthBearer, Secret: "s"}, map[string]string{"s/api-key": "geheim1\r\nX-Evil: 1"}, "has a line end or a control character"},
		"a type that nobody knows":  {&task.Auth{Type: "Magic", Secret: "s"}, map[string]string{"s/api-key": "a"}, `this runner knows no auth of type "Magic"`},
		"half of a user's password": {&task.Auth{Type: task.AuthBasic, Secret: "s"}, map[string]string{"s/username": "a"}, "the key password of the Secret s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			_, err := get(t, client(t, w, Options{Auth: tc.auth, Key: keys(tc.keys)}), "POST", "http://api.test/v1", "x")
			var cred *CredentialError
			if !errors.As(err, &cred) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "geheim1") {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if len(w.seen) > 0 {
				t.Errorf("sent: %q", w.seen)
			}
		})
	}
}

// What a server redirects to is asked only on the same host, and not in the clear
// after https.
func TestRedirects(t *testing.T) {
	to := func(where string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1" {
				http.Redirect(w, r, where, http.StatusTemporaryRedirect)
			}
		})
	}
	cases := map[string]struct {
		from, to string
		want     []string
		refused  bool
	}{
		"a metadata service":       {"http://api.test/v1", "http://169.254.169.254/v2", []string{"POST api.test/v1 k-123 x"}, true},
		"the same, mapped":         {"http://api.test/v1", "http://[::ffff:a9fe:a9fe]/v2", []string{"POST api.test/v1 k-123 x"}, true},
		"the same, as a number":    {"http://api.test/v1", "http://2852039166/v2", []string{"POST api.test/v1 k-123 x"}, true},
		"the same host":            {"http://api.test/v1", "/v2", []string{"POST api.test/v1 k-123 x", "POST api.test/v2 k-123 x"}, false},
		"the same host, by https":  {"http://api.test/v1", "https://api.test/v2", []string{"POST api.test/v1 k-123 x", "POST api.test/v2 k-123 x"}, false},
		"the same host, uppercase": {"http://api.test/v1", "http://API.test:80/v2", []string{"POST api.test/v1 k-123 x", "POST API.test:80/v2 k-123 x"}, false},
		"another host":             {"http://api.test/v1", "http://evil.test/v2", []string{"POST api.test/v1 k-123 x"}, true},
		"a host below":             {"http://api.test/v1", "http://a.api.test/v2", []string{"POST api.test/v1 k-123 x"}, true},
		"another port":             {"http://api.test/v1", "http://api.test:8080/v2", []string{"POST api.test/v1 k-123 x"}, true},
		"out of https":             {"https://api.test/v1", "http://api.test/v2", []string{"POST api.test/v1 k-123 x"}, true},
		"another scheme":           {"http://api.test/v1", "file:///etc/passwd", []string{"POST api.test/v1 k-123 x"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{hosts: map[string]http.Handler{}}
			for _, h := range []string{"http://api.test", "https://api.test", "http://API.test:80", "http://evil.test", "http://a.api.test", "http://api.test:8080"} {
				w.hosts[h] = to(tc.to)
			}
			u, _ := url.Parse(tc.from)
			c := client(t, w, Options{
				URL: u, Auth: &task.Auth{Type: task.AuthHeader, Secret: "s", Header: "X-Api-Key"},
				Key: keys(map[string]string{"s/api-key": "k-123"}), Headers: map[string]string{"X-Team": "red"},
			})
			_, err := get(t, c, "POST", tc.from, "x")
			var told *RedirectError
			if errors.As(err, &told) != tc.refused || err != nil && !tc.refused {
				t.Errorf("error %v", err)
			}
			var addr *address.RefusedError
			if isAddress := errors.As(err, &addr); isAddress != (strings.HasPrefix(name, "a metadata service") || strings.HasPrefix(name, "the same, ")) {
				t.Errorf("error %v is for an address: %t", err, isAddress)
			}
			if diff := cmp.Diff(tc.want, w.seen); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Even what goes elsewhere in spite of all carries nothing.
func TestNothingIsShownElsewhere(t *testing.T) {
	w := &world{hosts: map[string]http.Handler{"http://evil.test": http.HandlerFunc(fine)}}
	c := client(t, w, Options{Auth: &task.Auth{Type: task.AuthBearer, Secret: "s"}, Key: keys(map[string]string{"s/api-key": "k"})})
	if _, err := get(t, c, "GET", "http://evil.test/", ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GET evil.test/"}, w.seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestASecretThatWasRotated(t *testing.T) {
	wants := func(token string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+token {
				w.WriteHeader(http.StatusUnauthorized)
			}
		})
	}
	var learned []string
	values := []string{"old-12345", "new-12345", "new-12345", "new-12345"}
	o := Options{
		Auth: &task.Auth{Type: task.AuthBearer, Secret: "s"},
		Key: func(task.SecretKey) (string, error) {
			v := values[0]
			values = values[1:]
			return v, nil
		},
		Learn: func(s redact.Secret) { learned = append(learned, s.Name+"/"+s.Key+"="+string(s.Value)) },
	}
	w := &world{hosts: map[string]http.Handler{"http://api.test": wants("new-12345")}}
	if code, err := get(t, client(t, w, o), "POST", "http://api.test/v1", "x"); err != nil || code != 200 {
		t.Errorf("after a rotation: %d, %v", code, err)
	}
	want := []string{"POST api.test/v1 Bearer old-12345 x", "POST api.test/v1 Bearer new-12345 x"}
	if diff := cmp.Diff(want, w.seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"s/api-key=old-12345", "s/api-key=new-12345"}, learned); diff != "" {
		t.Errorf("learned -want +got:\n%s", diff)
	}
	w = &world{hosts: map[string]http.Handler{"http://api.test": wants("other")}}
	if code, err := get(t, client(t, w, o), "GET", "http://api.test/v1", ""); err != nil || code != 401 || len(w.seen) != 1 {
		t.Errorf("without a rotation: %d, %v, sent %d times", code, err, len(w.seen))
	}
}

// issuer gives tokens, one after the other.
func issuer(expires string, check func(r *http.Request) (code int, problem string)) http.Handler {
	n := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code, problem := check(r); problem != "" {
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": problem})
			return
		}
		n++
		fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer"%s}`, n, expires)
	})
}

func anybody(*http.Request) (int, string) { return 0, "" }

func TestTokens(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	refuse := map[string]bool{}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse[r.Header.Get("Authorization")] {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	w := &world{hosts: map[string]http.Handler{"http://api.test": api, "http://login.test": issuer(`,"expires_in":600`, anybody)}}
	o := Options{
		Auth: &task.Auth{Type: task.AuthOAuth, Secret: "s", TokenURL: "http://login.test/token", Scopes: []string{"a", "b"}},
		Key:  keys(map[string]string{"s/client-id": "me", "s/client-secret": "geheim"}), Now: func() time.Time { return now },
	}
	c := client(t, w, o)
	step := func(what string, want ...string) {
		t.Helper()
		w.seen = nil
		if code, err := get(t, c, "GET", "http://api.test/v1", ""); err != nil || code != 200 {
			t.Errorf("%s: %d, %v", what, code, err)
		}
		if diff := cmp.Diff(want, w.seen); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
	}
	const ask = "POST login.test/token Basic bWU6Z2VoZWlt grant_type=client_credentials&scope=a+b"
	step("first", ask, "GET api.test/v1 Bearer token-1")
	step("while it is good", "GET api.test/v1 Bearer token-1")
	now = now.Add(571 * time.Second)
	step("before it ends", ask, "GET api.test/v1 Bearer token-2")
	refuse["Bearer token-2"] = true
	step("when it is refused", "GET api.test/v1 Bearer token-2", ask, "GET api.test/v1 Bearer token-3")
}

func TestTokensThatAreNotGiven(t *testing.T) {
	answering := func(code int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})
	}
	cases := map[string]struct {
		issuer http.Handler
		asked  int
		want   string // empty: it is
	}{
		"who wants to be told in the body": {issuer("", func(r *http.Request) (int, string) {
			if r.FormValue("client_id") != "me" || r.FormValue("client_secret") != "geheim" || r.Header.Get("Authorization") != "" {
				return 401, "invalid_client"
			}
			return 0, ""
		}), 2, ""},
		"a refusal":               {answering(400, `{"error":"invalid_scope"}`), 1, "getting a token from http://login.test/token: it answered 400 invalid_scope. Check auth.oauthClientCredentials.scopes of the Toolset"},
		"a client nobody knows":   {answering(401, `{"error":"invalid_client"}`), 2, "it answered 401 invalid_client. Check the keys client-id and client-secret of the Secret s"},
		"a page":                  {answering(200, `<html>`), 1, "its answer has no access_token in it"},
		"a token of two lines":    {answering(200, `{"access_token":"a\r\nX-Evil: 1"}`), 1, "its answer has no access_token in it"},
		"a token of another type": {answering(200, `{"access_token":"a","token_type":"mac"}`), 1, "it gave a token of type mac; only bearer tokens can be sent"},
		"more than a token":       {answering(200, strings.Repeat(" ", 1<<20)+`{"access_token":"a"}`), 1, "its answer has no access_token in it"},
		"a redirect":              {http.RedirectHandler("http://evil.test/", http.StatusTemporaryRedirect), 1, "it answered 307"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{hosts: map[string]http.Handler{"http://api.test": http.HandlerFunc(fine), "http://login.test": tc.issuer}}
			c := client(t, w, Options{
				Auth: &task.Auth{Type: task.AuthOAuth, Secret: "s", TokenURL: "http://login.test/token"},
				Key:  keys(map[string]string{"s/client-id": "me", "s/client-secret": "geheim"}),
			})
			_, err := get(t, c, "GET", "http://api.test/v1", "")
			if got := fmt.Sprint(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) || strings.Contains(got, "geheim") {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			asked := counted(w.seen, "login.test")
			if n := counted(w.seen, "evil.test"); n > 0 {
				t.Errorf("sent: %q", w.seen)
			}
			if asked != tc.asked {
				t.Errorf("a token was asked for %d times, want %d: %q", asked, tc.asked, w.seen)
			}
		})
	}
}

// What the server of tokens refused for good is not asked for again with the same
// keys for a while; other keys are tried at once.
func TestRefusedClientCredentialsAreNotShownAgain(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	secret := map[string]string{"s/client-id": "me", "s/client-secret": "wrong"}
	w := &world{hosts: map[string]http.Handler{"http://api.test": http.HandlerFunc(fine), "http://login.test": issuer("", func(r *http.Request) (int, string) {
		if _, password, _ := r.BasicAuth(); password != "geheim" {
			return 401, "invalid_client"
		}
		return 0, ""
	})}}
	c := client(t, w, Options{
		Auth: &task.Auth{Type: task.AuthOAuth, Secret: "s", TokenURL: "http://login.test/token"},
		Key:  keys(secret), Now: func() time.Time { return now },
	})
	step := func(what string, asked int, want string) {
		t.Helper()
		w.seen = nil
		_, err := get(t, c, "GET", "http://api.test/v1", "")
		if got := counted(w.seen, "login.test"); got != asked || (err == nil) != (want == "") || !strings.Contains(fmt.Sprint(err), want) && want != "" {
			t.Errorf("%s: asked %d times, want %d: %v", what, got, asked, err)
		}
	}
	const advice = "invalid_client. Check the keys client-id and client-secret of the Secret s"
	step("first", 2, advice)
	step("again", 0, advice)
	now = now.Add(2 * time.Minute)
	step("after a while", 2, advice)
	secret["s/client-secret"] = "geheim"
	step("with another key", 1, "")
}

// counted is how much of what was sent has a part.
func counted(sent []string, part string) int {
	n := 0
	for _, one := range sent {
		n += strings.Count(one, part)
	}
	return n
}

// Whatever a name leads to, this machine is not reached.
func TestConnectionsAreJudgedByTheirAddress(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(fine))
	defer web.Close()
	c := NewClient()
	c.Transport.(*http.Transport).Proxy = nil
	_, err := get(t, c, "GET", web.URL, "")
	var told *address.RefusedError
	if !errors.As(err, &told) || told.Addr != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("loopback: %v", err)
	}
}
