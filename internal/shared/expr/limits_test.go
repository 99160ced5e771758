package expr_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
)

// Without limits these expressions take exponential time or all memory. With them the
// test ends: each is refused or has a value.
func TestCostlyExpressions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute under the race detector")
	}
	env := newEnv(t)
	double := func(begin, more string) string { return begin + strings.Repeat(more, 30) }
	for name, text := range map[string]string{
		"keys of keys":                 double("[1]", ".map(a, {a: a})"),
		"optMap on optMap":             double("optional.of(1)", ".optMap(a, a)") + ".orValue(0)",
		"optFlatMap on optFlatMap":     double("optional.of(1)", ".optFlatMap(a, optional.of(a))") + ".orValue(0)",
		"lists of lists, compared":     double("[1]", ".map(a, [a, a])") + " == " + double("[1]", ".map(a, [a, a])"),
		"lists of lists, looked in":    "1 in " + double("[[1]]", ".map(a, [a, a])"),
		"lists of lists, flattened":    double("[1]", ".map(a, [a, a])") + ".flatten(100)",
		"lists of lists, as text":      `"%s".format([` + double("[1]", ".map(a, [a, a])") + `])`,
		"objects of objects":           double("[1]", `.map(a, {"a": a, "b": a})`),
		"lists added to themselves":    double("[[1]]", ".map(a, a + a)") + "[0].size()",
		"nothing added to itself":      double("[[]]", ".map(a, a + a)") + "[0].size()",
		"text added to itself":         double(`["0123456789"]`, ".map(a, a + a)") + "[0].size()",
		"text replaced by itself":      double(`["aaaaaaaaaa"]`, `.map(a, a.replace("a", a))`) + "[0].size()",
		"text joined by itself":        double(`["a,a"]`, `.map(a, a.split("").join(a))`) + "[0].size()",
		"a range of all numbers":       "lists.range(999999999).size()",
		"loops in loops":               "lists.range(900).map(a, lists.range(900).map(b, lists.range(900).map(c, 1))).size()",
		"every one of every one":       "lists.range(900).all(a, lists.range(900).all(b, lists.range(900).all(c, true)))",
		"a pattern over much text":     `lists.range(500).map(a, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").join().matches("` + strings.Repeat("(a|aa)*", 200) + `b")`,
		"a pattern that was made":      `lists.range(900).map(a, "(a*)*").join().matches(lists.range(900).map(a, "(a*)*").join())`,
		"a pattern of large numbers":   `item.name.matches("` + strings.Repeat("(x{100}){10}", 200) + `")`,
		"such a pattern that was made": `lists.range(900).map(a, "x").join().matches(lists.range(900).map(a, "(x{100}){10}").join())`,
		"digits after a point":         `"%.1000000000f".format([1.0])`,
		"a search of much in much":     double(`["aaaaaaaaaa"]`, ".map(a, a + a)") + `.map(a, a.indexOf(a + "b"))`,
		"distinct items":               "lists.range(5000).distinct().size()",
		"sets of sets":                 "sets.contains(lists.range(5000), lists.range(5000))",
		"an int of another's choice":   "lists.range(item.size * 1000000000)",
	} {
		t.Run(name, func(t *testing.T) {
			p, e := env.Compile(text, expr.Dyn())
			if e != nil {
				t.Log(e)
				return
			}
			raw, err := p.Eval(values())
			if len(raw) > 100 {
				raw = raw[:100]
			}
			t.Log(string(raw), err)
		})
	}
}

func TestCost(t *testing.T) {
	env := newEnv(t)
	for name, tt := range map[string]struct{ text, want string }{
		"many cheap things":        {"lists.range(900).map(a, lists.range(900).map(b, 1)).size()", "it does more than an expression may"},
		"one function over much":   {"lists.range(900000) + lists.range(200000)", "it does more than an expression may"},
		"a value that is too long": {`lists.range(20).map(i, item.long)`, "the value has more than"},
		"a pattern that was made":  {`item.name.matches(item.pattern)`, "it does more than an expression may"},
		"a loop over a long list":  {`lists.range(30000).all(i, i >= 0)`, "it does more than an expression may"},
		"a comparison":             {`[item.deep, item.deep] == [item.deep, item.deep]`, "it does more than an expression may"},
	} {
		t.Run(name, func(t *testing.T) {
			p, e := env.Compile(tt.text, expr.Dyn())
			if e != nil {
				t.Fatal(e)
			}
			vars := values()
			vars["item"] = map[string]any{"long": strings.Repeat("x", expr.MaxResult/10), "deep": strings.Repeat("x", 6_000_000), "name": "x", "pattern": strings.Repeat("(x{100}){10}", 1500)}
			_, err := p.Eval(vars)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestWhatAWorkflowMayDoIsNotTooCostly(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute under the race detector")
	}
	output := `{"score":3,"verdict":"` + strings.Repeat("word ", 2000) + `","tags":["a","b","c"]}`
	var items []any
	for range 500 {
		items = append(items, json.RawMessage(output))
	}
	vars := values()
	vars["nodes"] = map[string]any{"items": map[string]any{"output": items}}
	env := newEnv(t)
	for _, text := range []string{
		`nodes.items.output`,
		`nodes.items.output.map(r, r.?score.orValue(0)).filter(s, s > 2).size() == 500`,
		`nodes.items.output.unwrapOpt().filter(r, r.verdict.contains("bad") || r.tags.exists(t, t == "c")).map(r, {"score": r.score, "tags": r.tags})`,
		`nodes.items.output.unwrapOpt().sortBy(r, r.score)`,
		`nodes.items.output.unwrapOpt().map(r, r.verdict).join("\n")`,
		`lists.range(10000).map(i, i + 1).filter(i, i > 9000).size() == 1000`,
	} {
		p, e := env.Compile(text, expr.Dyn())
		if e != nil {
			t.Fatal(e)
		}
		if _, err := p.Eval(vars); err != nil {
			t.Error(err)
		}
	}
}

// allocated returns how many bytes evaluating an expression allocates, and its error.
func allocated(t *testing.T, text string, vars map[string]any) (bytes uint64, err error) {
	t.Helper()
	p, e := newEnv(t).Compile(text, expr.Dyn())
	if e != nil {
		t.Fatal(e)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = p.Eval(vars)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// The cost limit ends expensive functions before they allocate much memory.
func TestExpensiveFunctionsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute under the race detector")
	}
	const most = 200 << 20
	vars := values()
	vars["item"] = map[string]any{
		"long":    strings.Repeat("x", 1<<20),
		"query":   "http://x/?" + strings.Repeat("a=b&", 1<<18),
		"digits":  strings.Repeat("9", 1<<20),
		"pattern": strings.Repeat("(x{100}){10}", 1500),
	}
	// 2³⁰ numbers in thirty steps, and a text of 320 KiB.
	shared := "[1]" + strings.Repeat(".map(a, [a, a])", 30)
	long := "['aaaaaaaaaa']" + strings.Repeat(".map(a, a + a)", 15)
	for _, text := range []string{
		shared + `.includes(` + shared + `[0])`,
		shared + `.lastIndexOf(` + shared + `[0])`,
		`dyn(` + shared + `).isSorted()`,
		`dyn(` + shared + `).max()`,
		`dyn(` + shared + `).sort()`,
		`sets.contains(` + shared + `, ` + shared + `)`,
		`(` + shared + ` + ` + shared + `).distinct()`,
		`{'a': ` + shared + `} != {'a': ` + shared + `}`,
		`optional.of(` + shared + `) == optional.of(` + shared + `)`,
		long + `.map(a, a.replace('a', a).size())`,
		long + `.map(a, a.split('').join(a).size())`,
		long + `.map(a, '` + strings.Repeat("%s", 400) + `'.format([` + strings.Repeat("a,", 399) + `a]).size())`,
		`lists.range(900).map(i, item.long + item.long).size()`,
		`lists.range(900).map(i, item.long.reverse()).size()`,
		`lists.range(900).map(i, item.long.size()).size()`,
		`lists.range(900).map(i, item.long.split('')).size()`,
		`lists.range(900).map(i, strings.quote(item.long)).size()`,
		`lists.range(900).map(i, item.long.substring(1).lowerAscii().trim().charAt(9)).size()`,
		`[lists.range(100000)].map(l, lists.range(900).map(i, l.slice(1, 99999))).size()`,
		`quantity('1e2147483647').isGreaterThan(quantity('1'))`,
		`quantity('1E-2147483648').add(quantity('1')).isInteger()`,
		`isQuantity('1e99999999999999999999')`,
		`quantity(item.digits).isInteger()`,
		`item.long.find(item.pattern)`,
		`item.long.findAll(item.pattern, 1)`,
		`lists.range(900).map(i, item.long.findAll('x'))`,
		`lists.range(900).map(i, url(item.query).getQuery()).size()`,
		`[url(item.query)].map(u, lists.range(900).map(i, u.getQuery())).size()`,
		`lists.range(900).map(i, isURL(item.query))`,
		`lists.range(900).map(i, format.uri().validate(item.query).hasValue())`,
		`lists.range(900).map(i, isSemver(item.long, true))`,
		`[lists.range(5000)].map(l, l.map(i, l.includes(i)))`,
		`[lists.range(5000)].map(l, l.map(i, l.indexOf(i)))`,
		`[lists.range(5000)].map(l, l.map(i, l.max()))`,
		`[lists.range(5000)].map(l, l.map(i, l.isSorted()))`,
		`lists.range(900).map(i, lists.range(900).transformMap(j, k, k)).size() + lists.range(900).map(i, lists.range(900).transformList(j, k, k)).size()`,
	} {
		bytes, err := allocated(t, text, vars)
		if err == nil || !strings.Contains(err.Error(), "it does more than an expression may") || bytes > most && !underRace {
			t.Errorf("%s: takes %d MiB, error %v", text, bytes>>20, err)
		}
	}
}

// Without the functions of Kubernetes, their costs are missing too.
func TestExpensiveFunctionsOfCELAreRefused(t *testing.T) {
	env, err := expr.CEL.NewEnv(map[string]expr.Type{"x": expr.Dyn()})
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]any{"x": strings.Repeat("x", 1<<20)}
	for _, call := range []string{"x.trim()", "x.split('')", "x.lowerAscii()", "x.upperAscii()", "x.substring(1)", "x.replace('x', 'y')", "x + x", "x.reverse()"} {
		p, e := env.Compile("lists.range(900).all(i, size("+call+") > 0)", expr.Dyn())
		if e != nil {
			t.Fatal(e)
		}
		if _, err := p.Eval(vars); err == nil || !strings.Contains(err.Error(), "it does more than an expression may") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// Of the outputs of nodes, only the fields that an expression reads are decoded.
func TestManyLargeOutputsTakeLittleMemory(t *testing.T) {
	const children, size = 490, 16 << 10
	for name, output := range map[string]string{
		"text":    `{"score":3,"verdict":"` + strings.Repeat("x", size) + `","tags":["a"]}`,
		"numbers": `{"score":3,"verdict":"","tags":[],"extra":{"n":[` + strings.Repeat("1,", size/2) + `1]}}`,
	} {
		var items []any
		for range children {
			items = append(items, json.RawMessage(output))
		}
		vars := values()
		vars["nodes"] = map[string]any{"items": map[string]any{"state": "Succeeded", "output": items}}
		for text, most := range map[string]uint64{
			`nodes.items.state == 'Succeeded'`:                             64 << 10,
			`nodes.items.output.map(o, o.?score.orValue(0)).sum() == 1470`: 2 * children * size,
		} {
			bytes, err := allocated(t, text, vars)
			if err != nil || bytes > most && !underRace {
				t.Errorf("%s: %s takes %d KiB, error %v; want %d KiB at most", name, text, bytes>>10, err, most>>10)
			}
		}
	}
}
