package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
)

const canary = "sk-live/7f+3a\"9&canary=="

func redactor() *redact.Redactor {
	return redact.New(
		redact.Secret{Name: "anthropic", Key: "api-key", Value: []byte(canary + "\n")},
		redact.Secret{Name: "short", Key: "pin", Value: []byte("1234")},
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
		"a value too short to be told by chance": {"pin 1234", "pin 1234"},
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

func TestJSON(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"a value without a secret stays as it is": {`{"b":1, "a":"\u0041"}`, `{"b":1, "a":"\u0041"}`},
		"a secret in a string":                    {`{"a":"x1234567890"}`, `{"a":"x‹secret:digits/n›"}`},
		"a secret behind escapes":                 {`{"a":"\u00312345678\u00390"}`, `{"a":"‹secret:digits/n›"}`},
		"a secret in a key":                       {`{"\u0031234567890":1}`, `{"‹secret:digits/n›":1}`},
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
