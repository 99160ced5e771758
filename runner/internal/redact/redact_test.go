package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
)

const canary = "sk-live/7f+3a\"9&canary=="

func redactor() *redact.Redactor {
	return redact.New(
		redact.Secret{Name: "anthropic", Key: "api-key", Value: []byte(canary + "\n")},
		redact.Secret{Name: "short", Key: "pin", Value: []byte("9876543")},
		redact.Secret{Name: "digits", Key: "n", Value: []byte("1234567890")},
	)
}

func TestString(t *testing.T) {
	quoted, _ := json.Marshal(canary)
	basic := base64.StdEncoding.EncodeToString([]byte("ann:" + canary))
	cases := map[string]struct{ in, want string }{
		"text without a secret stays":            {"hello", "hello"},
		"the value itself":                       {"key " + canary + ".", "key ‹secret:anthropic/api-key›."},
		"the value in base64":                    {base64.StdEncoding.EncodeToString([]byte(canary)), "‹secret:anthropic/api-key›"},
		"the value in base64 for URLs":           {base64.RawURLEncoding.EncodeToString([]byte(canary)), "‹secret:anthropic/api-key›"},
		"the value in a query":                   {"?k=" + url.QueryEscape(canary), "?k=‹secret:anthropic/api-key›"},
		"the value escaped in JSON":              {string(quoted), `"‹secret:anthropic/api-key›"`},
		"the value in basic authentication":      {basic, basic[:6] + "‹secret:anthropic/api-key›" + basic[len(basic)-2:]},
		"a value too short to be told by chance": {"pin 9876543", "pin 9876543"},
		"a value too short, in base64":           {base64.StdEncoding.EncodeToString([]byte("9876543")), base64.StdEncoding.EncodeToString([]byte("9876543"))},
		"two in a row":                           {canary + canary, "‹secret:anthropic/api-key›‹secret:anthropic/api-key›"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := redactor().String(tc.in)
			if name == "the value in basic authentication" {
				if strings.Contains(got, tc.in[10:20]) || !strings.Contains(got, "‹secret:anthropic/api-key›") {
					t.Errorf("String(%q) = %q", tc.in, got)
				}
				return
			}
			if got != tc.want {
				t.Errorf("String(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

// lowerHex finds the escapes of a URL, which some programs write in lower case.
var lowerHex = regexp.MustCompile(`%[0-9A-F]{2}`)

// Base64 pads two of three lengths, and MinSecret is the shortest that is redacted.
func TestFormsOfKeysOfAnyLength(t *testing.T) {
	const alphabet = "k/7+Q_z9~x?2 w&4=m%8-B>5"
	for size := 8; size <= len(alphabet); size++ {
		key := alphabet[:size]
		r := redact.New(redact.Secret{Name: "s", Key: "k", Value: []byte(key)})
		quoted, _ := json.Marshal(key)
		forms := map[string]string{
			"the key":                                key,
			"in a path":                              url.PathEscape(key),
			"in a query":                             url.QueryEscape(key),
			"in a path in lower case":                lowerHex.ReplaceAllStringFunc(url.PathEscape(key), strings.ToLower),
			"in a query in lower case":               lowerHex.ReplaceAllStringFunc(url.QueryEscape(key), strings.ToLower),
			"in a query without +":                   strings.ReplaceAll(url.QueryEscape(key), "+", "%20"),
			"in a query without +, in lower case":    lowerHex.ReplaceAllStringFunc(strings.ReplaceAll(url.QueryEscape(key), "+", "%20"), strings.ToLower),
			"in JSON":                                string(quoted[1 : len(quoted)-1]),
			"in base64":                              base64.StdEncoding.EncodeToString([]byte(key)),
			"in base64 without padding":              base64.RawStdEncoding.EncodeToString([]byte(key)),
			"in base64 for URLs":                     base64.URLEncoding.EncodeToString([]byte(key)),
			"in base64 for URLs, as a JWT spells it": base64.RawURLEncoding.EncodeToString([]byte(key)),
		}
		for form, text := range forms {
			if got := r.String("<" + text + ">"); got != "<‹secret:s/k›>" {
				t.Errorf("a key of %d bytes, %s: %q becomes %q", size, form, text, got)
			}
		}
	}
}

// A name before a password moves the letters of base64. Those that a key shares with its
// neighbors may stay: one at each end.
func TestAKeyBesideOthersInBase64(t *testing.T) {
	for size := 8; size <= len(canary); size++ {
		key := canary[:size]
		r := redact.New(redact.Secret{Name: "s", Key: "k", Value: []byte(key)})
		for _, user := range []string{"", "a:", "an:", "ann:", "anna:"} {
			for _, after := range []string{"", "@", "@h", "@ho"} {
				for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
					text := encoding.EncodeToString([]byte(user + key + after))
					begin, end := (len(user)*8+5)/6, (len(user)+size)*8/6
					rest, found := strings.CutPrefix(r.String(text), text[:begin]+"‹secret:s/k›")
					if !found || len(rest) > len(text[end:]) {
						t.Errorf("%q beside %q and %q: %q", key, user, after, r.String(text))
					}
				}
			}
		}
	}
}

func TestASecretThatBeginsLikeAnother(t *testing.T) {
	const short, long, longest = "sk-live-0", "sk-live-0123", "sk-live-012345678"
	secret := func(key, value string) redact.Secret {
		return redact.Secret{Name: "s", Key: key, Value: []byte(value)}
	}
	a, b, c := secret("a", short), secret("b", long), secret("c", longest)
	for _, known := range [][]redact.Secret{{a, b, c}, {c, b, a}, {b, a, c}, {b, c, a}} {
		r := redact.New(known...)
		want := "‹secret:s/a› ‹secret:s/b› ‹secret:s/c›"
		if got := r.String(short + " " + long + " " + longest); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
		s := r.Stream()
		if got := s.Write(short+" "+long[:10]) + s.Write(long[10:]+" "+longest[:12]) + s.Write(longest[12:]) + s.Flush(); got != want {
			t.Errorf("the stream is %q, want %q", got, want)
		}
	}
}

// Keys are learned while others are: of OAuth tokens, and of Secrets that are rotated.
func TestKeysAreLearnedAtOnce(t *testing.T) {
	r := redact.New()
	key := func(i, j int) string { return fmt.Sprintf("token-%d-%d-end", i, j) }
	const learners, keys = 8, 100
	var wg sync.WaitGroup
	for i := range learners {
		wg.Go(func() {
			for j := range keys {
				r.Add(redact.Secret{Name: "s", Key: strconv.Itoa(i), Value: []byte(key(i, j))})
				if got := r.String(key(i, j)); strings.Contains(got, "token") {
					t.Errorf("%q becomes %q as soon as it is known", key(i, j), got)
				}
			}
		})
	}
	wg.Wait()
	for i := range learners {
		for j := range keys {
			if got := r.String(key(i, j)); strings.Contains(got, "token") {
				t.Errorf("%q becomes %q", key(i, j), got)
			}
		}
	}
}

func TestJSON(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"a value without a secret stays as it is": {`{"b":1, "a":"\u0041"}`, `{"b":1, "a":"\u0041"}`},
		"a secret in a string":                    {`{"a":"x1234567890"}`, `{"a":"x‹secret:digits/n›"}`},
		"a secret behind escapes":                 {`{"a":"\u00312345678\u00390"}`, `{"a":"‹secret:digits/n›"}`},
		"a secret in a key":                       {`{"\u0031234567890":1}`, `{"‹secret:digits/n›":1}`},
		"a secret before a value without one":     {`["\u0031234567890",1]`, `["‹secret:digits/n›",1]`},
		"a secret in an object in a list":         {`[{"a":"\u0031234567890"},{}]`, `[{"a":"‹secret:digits/n›"},{}]`},
		"no value at all":                         {``, ``},
		"other numbers stay as they are written":  {`{"a":"\u0031234567890","n":98765432109876543210}`, `{"a":"‹secret:digits/n›","n":98765432109876543210}`},
		"a text without escapes keeps its order":  {`{"b":"1234567890", "a":"<"}`, `{"b":"‹secret:digits/n›", "a":"<"}`},
		"text that is no JSON becomes a string":   {`{"a":"1234567890`, `"{\"a\":\"‹secret:digits/n›"`},
		"a secret as a number becomes a string":   {`{"a":1234567890}`, `"{\"a\":‹secret:digits/n›}"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := redactor().JSON(json.RawMessage(tc.in))
			if string(got) != tc.want {
				t.Errorf("JSON(%s) = %s, want %s", tc.in, got, tc.want)
			}
		})
	}
}

func TestAStreamFindsASecretHoweverItIsCut(t *testing.T) {
	text := "say " + canary + ", sk-live/7 is not it; " + canary
	want := redactor().String(text)
	for i := range len(text) {
		for j := i; j < len(text); j++ {
			s := redactor().Stream()
			got := s.Write(text[:i]) + s.Write(text[i:j]) + s.Write(text[j:]) + s.Flush()
			if got != want {
				t.Fatalf("cut at %d and %d: %q, want %q", i, j, got, want)
			}
		}
	}
}

func TestANilRedactorChangesNothing(t *testing.T) {
	var r *redact.Redactor
	s := r.Stream()
	if got := s.Write(canary) + s.Flush() + r.String("x") + string(r.JSON([]byte("1"))); got != canary+"x1" {
		t.Errorf("got %q", got)
	}
}

func TestPrintable(t *testing.T) {
	const in = "a\x1b[31mb\x00c\td\ne\u0085f\u202eg"
	if got, want := redact.Printable(in), "a[31mbc\td\nefg"; got != want {
		t.Errorf("Printable(%q) = %q, want %q", in, got, want)
	}
}

// The classes of characters that are dropped end where Unicode ends them.
func TestPrintableDropsControlCharactersAlone(t *testing.T) {
	for _, r := range []rune{0x1f, 0x7f, 0x80, 0x9f, 0x202a, 0x202e, 0x2066, 0x2069} {
		if got := redact.Printable(string(r)); got != "" {
			t.Errorf("%U is kept", r)
		}
	}
	for _, r := range []rune{' ', '~', 0xa0, 0x2029, 0x202f, 0x2065, 0x206a} {
		if got := redact.Printable(string(r)); got != string(r) {
			t.Errorf("%U is dropped", r)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add("x"+canary, 3)
	f.Add("1234567890", 9)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		cut = min(max(cut, 0), len(text))
		r := redactor()
		s := r.Stream()
		got := s.Write(text[:cut]) + s.Write(text[cut:]) + s.Flush()
		if got != r.String(text) {
			t.Errorf("cut at %d: %q, want %q", cut, got, r.String(text))
		}
		if strings.Contains(got, canary) {
			t.Errorf("a secret is left in %q", got)
		}
	})
}

func BenchmarkString(b *testing.B) {
	r := redactor()
	text := strings.Repeat("All work and no play makes Jack a dull boy. ", 500)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.String(text)
	}
}
