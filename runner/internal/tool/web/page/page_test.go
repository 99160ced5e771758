package page

import (
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func base(t testing.TB) *url.URL {
	t.Helper()
	u, err := url.Parse("https://example.com/docs/page.html?q=1")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// What a visitor sees, and what is written of it.
func TestRead(t *testing.T) {
	cases := map[string]struct{ html, want string }{
		"paragraphs":                    {`<p>One  two</p><p>three`, "One two\n\nthree"},
		"text alone":                    {"a\n b &amp; c&nbsp;d", "a b & c d"},
		"headings":                      {`<h1>A</h1>x<h3>B <i>c</i></h3>y<h6>D</h6>`, "# A\n\nx\n\n### B *c*\n\ny\n\n##### D"},
		"a heading of several lines":    {`<h2>A<br>B<div>C</div></h2>`, "## A B C"},
		"an empty heading":              {`<h2> </h2>x`, "x"},
		"lines":                         {`a<br>b<br/>c`, "a\nb\nc"},
		"marks":                         {`a <b> b </b>c <em>d</em>, <code>e</code>`, "a **b** c *d*, `e`"},
		"marks around nothing":          {`a<b> </b>b<a href="/x"></a>`, "a b"},
		"marks that overlap":            {`<b>a<i>b</b>c</i>`, "**a*b***c"},
		"a mark over paragraphs":        {`<b><p>a</p><p>b</p></b>`, "**a**\n\nb"},
		"a list":                        {`<p>x<ul><li>a<li>b <b>c</b></ul>y`, "x\n\n- a\n- b **c**\n\ny"},
		"a list with numbers":           {`<ol start=9><li>a<li>b<p>c</p></ol>`, "9. a\n10. b\n\n    c"},
		"lists in lists":                {`<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>`, "- a\n  - b\n- c"},
		"an empty item":                 {`<ul><li></li><li>a</ul>`, "- a"},
		"a quotation":                   {`<blockquote><p>a</p><p>b</p></blockquote>c`, "> a\n>\n> b\n\nc"},
		"terms":                         {`<dl><dt>a<dd>b<dt>c<dd>d</dl>`, "a\n: b\nc\n: d"},
		"a rule":                        {`a<hr>b`, "a\n\n---\n\nb"},
		"links":                         {`<a href="../x">a</a> <a href="//o.org/(y)">b</a> <a href="?z">c</a>`, "[a](https://example.com/x) [b](https://o.org/%28y%29) [c](https://example.com/docs/page.html?z)"},
		"links that lead nowhere":       {`<a href="#x">a</a> <a href="javascript:x()">b</a> <a href="data:,x">c</a> <a>d</a> <a href="https://[">e</a>`, "a b c d e"},
		"a link that is very long":      {`<a href="/` + strings.Repeat("x", maxLink) + `">a</a>`, "a"},
		"a link around a card":          {`<a href="/x"><h3>a</h3><p>b</p></a>`, "### [a](https://example.com/x)\n\nb"},
		"a base":                        {`<base href="/b/"><a href="c">d</a>`, "[d](https://example.com/b/c)"},
		"pictures":                      {`<img alt="A  cat" src="/c.png"> <img src="/d.png"> <img alt="e" src="data:image/png;base64,AA==">`, "![A cat](https://example.com/c.png) e"},
		"code":                          {"<pre><code class=\"hl language-go\">func f() {\n\tx  y\n}\n</code></pre>z", "```go\nfunc f() {\n\tx  y\n}\n```\n\nz"},
		"code with fences":              {"<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"},
		"code in lines of elements":     {`<pre><div>a</div><div>b<span>c</span></div></pre>`, "```\na\nbc\n```"},
		"code in a list":                {"<ul><li>x<pre>a\n\nb</pre></ul>", "- x\n\n  ```\n  a\n  \n  b\n  ```"},
		"a table":                       {`<table><thead><tr><th>A<th>B|C</thead><tr><td>1</td><td>x<br>y<p>z</p></td></tr><tr><td><td>2</table>`, "| A | B\\|C |\n|---|---|\n| 1 | x y z |\n|  | 2 |"},
		"a table for layout":            {`<table><tr><td>a<td><table><tr><td>b<td>c</table></table>`, "a\n\nb c"},
		"a table of one column":         {`<table><tr><td><p>a</p><p>b</p><tr><td>c</table>`, "a\n\nb\n\nc"},
		"a table with line numbers":     {"<table><tr><td>1\n2<td><pre>a\nb</pre></table>", "1 2\n\n```\na\nb\n```"},
		"what is hidden":                {`a<script>b</script><style>c</style><p hidden>d</p><div aria-hidden=true>e</div><div style="display: none">f</div><template>g</template><noscript>h</noscript><svg><title>i</title><text>j</text></svg>k`, "ak"},
		"what surrounds the content":    {`<nav><a href=/>home</a></nav><div role=banner>x</div><p>` + words(60) + `</p><footer>y</footer>`, words(60)},
		"content that is all in a menu": {`<nav>only this</nav>`, "only this"},
		"main":                          {`<div>ad</div><main><h1>T</h1>` + words(60) + `</main><div>more ads</div>`, "# T\n\n" + words(60)},
		"main with little in it":        {`<div>` + words(60) + `</div><main>x</main>`, words(60) + "\n\nx"},
		"a main that nobody ends":       {`<div>ad</div><div role="main"><p>` + words(60), words(60)},
		"articles":                      {`<div>ad</div><article>` + words(40) + `</article><div>ad</div><article>` + words(30) + `</article>`, words(40) + "\n\n" + words(30)},
		"characters that nobody sees":   {"a\u200bb\u202ec\U000e0041d\u2066e\x07f👩\u200d🔬", "abcdef👩\u200d🔬"},
		"an end without a beginning":    {`a</div></b>b</p>c`, "abc"},
		"an element that is not known":  {`<x-y>a</x-y><z hidden>b</z>c`, "ac"},
		"a comment and a doctype":       {`<!doctype html><!-- x -->a`, "a"},
		"a tag that is not ended":       {`a<b`, "a"},
		"nothing":                       {``, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Read(tc.html, base(t)).Text); diff != "" {
				t.Errorf("Read(%s).Text -want +got:\n%s", tc.html, diff)
			}
		})
	}
}

func words(n int) string { return strings.TrimSpace(strings.Repeat("words ", n)) }

func TestTitle(t *testing.T) {
	for html, want := range map[string]string{
		`<head><title> A
			&lt;b&gt; </title></head><svg><title>B</title></svg>`: "A <b>",
		`<title>` + strings.Repeat("x", 400) + `</title>`: strings.Repeat("x", maxTitle) + "…",
		`no title`: "",
	} {
		if got := Read(html, base(t)).Title; got != want {
			t.Errorf("Read(%q).Title = %q, want %q", html, got, want)
		}
	}
}

// A page written against its reader costs no more than its length allows: each
// of these would be hundreds of megabytes as a tree, or as Markdown.
func TestPagesAgainstTheirReader(t *testing.T) {
	fill := func(head, unit string) string { return head + strings.Repeat(unit, (128<<10-len(head))/len(unit)) }
	var marks strings.Builder
	for i := range 400 {
		fmt.Fprintf(&marks, "<b id=%d>", i)
	}
	cases := map[string]string{
		"marks that are never ended":     fill("<div>"+marks.String()+"</div>", "<div>x</div>"),
		"quotations in quotations":       fill(strings.Repeat("<blockquote>", 1000), "a<br>"),
		"only quotations":                fill("", "<blockquote>a"),
		"lists in lists":                 fill("", "<ul><li>a"),
		"many inline elements, and ends": fill(strings.Repeat("<i><div>", 1000)+strings.Repeat("<b>", 5_000), "</i>x"),
		"a row of many cells, many rows": "<table><tr>" + strings.Repeat("<td>", 12_000) + strings.Repeat("<tr><td>", 8_000),
		"tables in tables":               fill("", "<table><tr><td>a"),
		"links below a very long base":   fill(`<base href="https://example.com/`+strings.Repeat("b", 900)+`/">`, "<a href=c>d</a>"),
		"cells over many columns":        fill("<table>", `<tr><td colspan=1000000 rowspan=1000000>a<td>b`),
		"deep, then paragraphs":          fill(strings.Repeat("<span>", 12_000), "<p>x<li>y"),
		"fences in code":                 fill("<pre>", "```` "),
		"titles":                         fill("", "<title>x</title>"),
		"attributes":                     fill("<p", " a=b"),
		"a tag without end":              fill("x<a href=", "y"),
		"many hidden elements":           fill("", "<p hidden>x"),
		"references":                     fill("", "&CounterClockwiseContourIntegral;"),
	}
	for name, html := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := Read(html, base(t))
			runtime.ReadMemStats(&after)
			if len(got.Text) > MaxText || !utf8.ValidString(got.Text) {
				t.Errorf("Read() made %d bytes", len(got.Text))
			}
			const most = 64 << 20
			if used := after.TotalAlloc - before.TotalAlloc; used > most {
				t.Errorf("Read() allocated %d MiB for %d KiB", used>>20, len(html)>>10)
			}
		})
	}
}

func TestATextThatIsTooLongIsCut(t *testing.T) {
	html := "<ul><li><ul><li><ul><li>" + strings.Repeat("<br>x", 400_000)
	got := Read(html, base(t))
	if !got.Cut || len(got.Text) > MaxText || len(got.Text) < MaxText-100 {
		t.Errorf("Read() made %d bytes, cut %v", len(got.Text), got.Cut)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`<main><h1>a<pre>b</h1><table><tr><td><li>c</table>`, `<a href=x><h2>a</a></h2>`, `<pre><table><tr><td>`,
		`<ul><blockquote></ul><li>`, `<b><pre></b><main></pre><article><hr>`, `<h1><table><td>a<dd>b</h1>`, "<p>\x00\xff",
		`<svg><title>a</svg></title><img alt="]" src=x>`, `<table><td><h1></table></h1>x`,
	} {
		f.Add(seed)
	}
	from := base(f)
	f.Fuzz(func(t *testing.T, html string) {
		got := Read(html, from)
		if len(got.Text) > MaxText {
			t.Errorf("%d bytes", len(got.Text))
		}
		if utf8.ValidString(html) && !utf8.ValidString(got.Title+got.Text) {
			t.Errorf("Read(%q) is no UTF-8", html)
		}
		if again := Read(html, from); again != got {
			t.Errorf("Read(%q) is not always the same", html)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	html := "<main>" + strings.Repeat(`<h2 class="x">Heading</h2><p>Some <b>bold</b> text with <a href="/docs/x">a link</a> and <code>code</code>.</p><ul><li>one<li>two</ul>`, 3000)
	from := base(b)
	b.SetBytes(int64(len(html)))
	b.ReportAllocs()
	for b.Loop() {
		Read(html, from)
	}
}
