package expr_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
)

func BenchmarkNewEnv(b *testing.B) {
	for b.Loop() {
		newEnv(b)
	}
}

func BenchmarkCompile(b *testing.B) {
	env := newEnv(b)
	for b.Loop() {
		if _, err := env.Compile(`nodes.maybe.?output.?score.orValue(0) > 3 && input.goal != ""`, expr.Bool()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEval(b *testing.B) {
	p, e := newEnv(b).Compile(`nodes.maybe.?output.?score.orValue(0) > 3 && input.goal != ""`, expr.Bool())
	if e != nil {
		b.Fatal(e)
	}
	vars := values()
	for b.Loop() {
		if _, err := p.Bool(vars); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompileAndEval(b *testing.B) {
	for b.Loop() {
		env := newEnv(b)
		p, e := env.Compile(`nodes.sure.output.score > 3`, expr.Bool())
		if e != nil {
			b.Fatal(e)
		}
		if _, err := p.Bool(values()); err != nil {
			b.Fatal(err)
		}
	}
}
