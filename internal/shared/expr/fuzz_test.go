package expr_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
)

// FuzzCompile evaluates what compiles: nothing panics, and values are JSON.
func FuzzCompile(f *testing.F) {
	for _, tt := range accepted {
		f.Add(tt.text)
	}
	for _, tt := range refused {
		f.Add(tt.text)
	}
	env := newEnv(f)
	f.Fuzz(func(t *testing.T, text string) {
		p, e := env.Compile(text, expr.Dyn())
		if e != nil {
			if e.Line < 1 || e.Column < 1 || e.Message == "" || utf8.RuneCountInString(e.Message) > 1001 {
				t.Errorf("%+v", e)
			}
			return
		}
		got, err := p.Eval(values())
		if err == nil && !json.Valid(got) {
			t.Errorf("%s is %s", text, got)
		}
		again, second := p.Eval(values())
		if string(got) != string(again) || (err == nil) != (second == nil) {
			t.Errorf("%s is %s and then %s", text, got, again)
		}
		if err != nil && strings.Contains(err.Error(), "internal error") {
			t.Errorf("%s: %v", text, err)
		}
	})
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"a ${{ run.name }} b", "$${{ x }}", "${{ {\"a\": {}}}}", "${{ r'}}' }}", "${{ '''", "${{ // }} \" }}", "${{ `a-b` }}", "${{ nodes.maybe.text }}"} {
		f.Add(seed)
	}
	env := newEnv(f)
	f.Fuzz(func(t *testing.T, text string) {
		template, e := env.Template(text)
		if e != nil {
			if e.Line < 1 || e.Column < 1 || e.Line > 1+strings.Count(text, "\n") {
				t.Errorf("%+v", e)
			}
			return
		}
		got, err := template.Text(values(), 1000)
		if err == nil && len(got) > 1000 {
			t.Error(len(got))
		}
		if err == nil && !strings.Contains(text, "${{") && got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	})
}
