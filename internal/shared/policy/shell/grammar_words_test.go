package shell_test

import "strings"

// programName writes the name of a program, mostly so that it is known.
func (g *grammar) programName() {
	name := g.name()
	switch g.choices(24) {
	case 0:
		g.put(`'`, name, `'`)
	case 1:
		g.put(`"`, name, `"`)
	case 2:
		g.put(`\`, name)
	case 3:
		g.put(name[:1], "\\\n", name[1:])
	case 4:
		g.put(name[:1], `''`, name[1:])
	case 5:
		g.put(`"`, name[:1], "\\\n", name[1:], `"`)
	case 6:
		g.put(`$'`, g.ansi(name), `'`)
	case 7:
		g.put(`$"`, name, `"`)
	case 8:
		g.put(name, g.pick("#x", "{}", "\u00a0x", "'\n'", "=", "!", "^", "]", "%"))
	default:
		g.put(name)
	}
	if g.rarely(40) {
		g.word()
	}
}

// ansi spells a text for $'…'.
func (g *grammar) ansi(text string) string {
	switch g.choices(7) {
	case 0:
		return `\x` + hex(text[0], 2) + text[1:]
	case 1:
		return `\` + octal(text[0]) + text[1:]
	case 2:
		return `\u00` + hex(text[0], 2) + text[1:]
	case 3:
		return text + g.pick(`\'`, `\\`, `\n`, `\"`, `\0`, `\c1`, `\cx`, `\q`, `\x{61}`, `\400`, `\xff`, `\e`, `\?`, "\\\n", `\ud800`, `\x`, `\u`, `\U110000`)
	case 4:
		return `\U000000` + hex(text[0], 2) + text[1:]
	case 5:
		return `\x` + hex(text[0], 2) + "\\\n" + text[1:]
	}
	return text
}

func hex(c byte, digits int) string {
	const all = "0123456789abcdef"
	out := string([]byte{all[c>>4], all[c&15]})
	return strings.Repeat("0", digits-2) + out
}

func octal(c byte) string { return string([]byte{'0' + c>>6, '0' + c>>3&7, '0' + c&7}) }

// word writes an argument.
func (g *grammar) word() {
	for more := true; more; more = g.rarely(4) {
		g.piece()
	}
}

func (g *grammar) piece() {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > maxGrammarDepth {
		g.put(g.pick("x", "-r", "push", "y=1"))
		return
	}
	switch g.choices(26) {
	case 0:
		g.put(`'`, g.pick("x", "#", "a b", "\\", "\n", "\\\n", "(", `"`, "$(aa)", "`aa`", "", "!"), `'`)
	case 1, 2:
		g.double()
	case 3:
		g.put(`$'`, g.ansi(g.pick("x", "push", "-r")), `'`)
	case 4:
		g.put(`\`, g.pick("x", " ", "'", `"`, "#", "\\", "\n", "$", "`", "(", ";", "\t", "!", "{"))
	case 5:
		g.put(g.pick("$x", "${x}", "$IFS", "${x:-y}", `"$@"`, "$1", "$#", "${#x}", "$$", "$?", "${x#y}", `${x:-"}"}`, "${x:-'}'}", "${x/\\//y}", "$", "${IFS:0:1}", "${!x}", "${x[@]}", "${x^}", "$-"))
	case 6:
		g.put("${x", g.pick(":-", "-", ":+", "+", "#", "%", "/", ":", "##", "^", ","))
		g.word()
		g.put("}")
	case 7, 8:
		g.substitution()
	case 9:
		g.put("`", g.backquoted(), "`")
	case 10:
		g.put("$((", g.arith(), "))")
	case 11:
		g.put(g.pick("<(", ">("))
		g.inner()
		g.put(")")
	case 12:
		g.put(g.pick("{a,b}", "{-r,push}", "{1..3}", "{a,", "{,x}", "{a,{b,-r}}", "x{,y}", "{a\\,b}", `{"a,b",-r}`, "{$x,-r}", "{a,b}{c,d}", "{}", "{a}", "\\{a,b}", "{p,q}ush", "-{r,f}", "{'push',x}", "{x,`aa`}", "{a..", "{-,x}r", "$x{-r,b}", "{a,$x}-r"))
	case 13:
		g.put(g.pick("[a]", "*", "?", "[!a]", "a*", "[[:alpha:]]", "[", "]", "a[0]", "[x]=y"))
	case 14:
		g.put(g.pick("a#b", "#", "a=#", "x=(", "a=$'#'", "##"))
	case 15:
		g.put("x", "\\\n", "y")
	case 16:
		g.put(g.pick("!", "!!", "!$", "^a^b", "!aa", "!-1", "{", "}", "if", "fi", "do", "done", "then", "case", "esac", "in", "function", "time", "[[", "]]", "coproc", "select"))
	case 17:
		g.put("\u00a0")
	case 18:
		g.put("$[", g.arith(), "]")
	case 19:
		g.put(`$"`, g.pick("x", "#", "a b", "$(aa)", `\"`), `"`)
	default:
		g.put(g.pick("x", "-r", "push", "y=1", "-rf", "--force", "origin", "a,b", "%1", "+x", "@", ":", "=", "~x"))
	}
}

// double writes double quotes.
func (g *grammar) double() {
	g.put(`"`)
	for range 1 + g.choices(2) {
		switch g.choices(12) {
		case 0:
			g.substitution()
		case 1:
			g.put("`", g.backquoted(), "`")
		case 2:
			g.put("${x:-", g.pick("y", "'", "'}'", `"y"`, `\}`, "$(aa)", "`ff`", "#"), "}")
		case 3:
			g.put("$((", g.arith(), "))")
		default:
			g.put(g.pick("x", "push", "\\\n", `\"`, `\\`, `\$`, "\\`", `\x`, "#", " # ", "'", "\n", "$x", "$", "!", "!!", `\!`, "a b", "(", "\\\\\n", "{a,b}", "$'", "<<E"))
		}
	}
	g.put(`"`)
}

// substitution writes $(…).
func (g *grammar) substitution() {
	g.put("$(")
	g.inner()
	g.put(")")
}

// inner writes commands inside brackets, whose here-documents end there.
func (g *grammar) inner() {
	outer := g.pending
	g.pending = nil
	g.list(2)
	if len(g.pending) > 0 {
		g.flush()
	}
	g.pending = outer
	if g.rarely(4) {
		g.put(g.pick(" ", "\n", "\\\n", " # x\n", " # x\\\n"))
	}
}

// backquoted writes commands and quotes them for backquotes.
func (g *grammar) backquoted() string {
	inner := &grammar{choices: g.choices, depth: g.depth + 1}
	inner.list(2)
	inner.flush()
	text := inner.text.String()
	if g.rarely(6) {
		return text // whatever that means
	}
	return strings.NewReplacer("\\", "\\\\", "`", "\\`", "$", "\\$").Replace(text)
}

func (g *grammar) arith() string {
	return g.pick("1", "1+1", "x", "x++", "1 << 2", "x ? 1 : 2", "(1)", "$x", "16#ff", "x=1", "a[0]", "$(aa)", "`ff`", "1 # 2", "\\\n1", "\n1\n", "'1'", `"1"`, "1,2", "a[$(cc)]", "$((1))", "")
}

func (g *grammar) assignment() {
	g.put(g.pick("x", "y", "IFS", "a[0]", "x+", "LANG"), "=")
	switch g.choices(16) {
	case 0:
		g.put(g.pick("(a b)", "(\na # x\nb)", "([0]=a)", "()", "(a # \\\nb)", "('#' b)", "($(aa))", "( a\\\nb )"))
	case 1: // nothing
	case 2:
		g.put(g.pick("' '", ":", "b", `$'\n'`))
	default:
		g.word()
	}
}

func (g *grammar) redirect() {
	switch g.choices(8) {
	case 0, 1, 2:
		g.hereDocument()
	case 3:
		g.put("<<<")
		g.put(g.pick("", " "))
		g.word()
	case 4:
		g.put("> >(")
		g.inner()
		g.put(")")
	case 5:
		g.put("< <(")
		g.inner()
		g.put(")")
	default:
		g.put(g.pick(">out", "2>&1", ">&2", "&>out", ">|out", "<>out", "2>out", ">>out", "<out", "{fd}>out", "&>>out", ">&out", "<&-", "2>&-", "> out", ">\\\nout"))
	}
}

// hereDocument writes the beginning of a here-document and keeps its body for the
// next newline.
func (g *grammar) hereDocument() {
	type delimiter struct{ written, ends string }
	all := []delimiter{
		{"E", "E"},
		{"'E'", "E"},
		{`"E"`, "E"},
		{`\E`, "E"},
		{`E'F'`, "EF"},
		{`"E F"`, "E F"},
		{`''`, ""},
		{"$'E'", "E"},
		{"E\\\nF", "EF"},
		{"'E\\'", "E\\"},
		{"$x", "$x"},
		{"'#'", "#"},
		{"E#", "E#"},
		{"!", "!"},
		{`"E`, "E"},
		{"-E", "-E"},
		{" E", "E"},
		{" 'E'", "E"},
		{`"E\"`, `E"`},
		{"E\\ F", "E F"},
		{"$(E)", "$(E)"},
		{"`E`", "`E`"},
		{"${E}", "${E}"},
		{`$"E"`, "E"},
		{`"E\\F"`, `E\F`},
	}
	d := all[0]
	if g.choices(3) == 0 {
		d = all[g.choices(len(all))]
	}
	dash := g.pick("", "", "-")
	if strings.HasPrefix(d.written, "-") {
		dash = ""
	}
	g.put(g.pick("", "", "3"), "<<", dash, d.written)
	var body strings.Builder
	for g.choices(2) > 0 {
		if dash != "" {
			body.WriteString(g.pick("\t", "", " ", "\t\t"))
		}
		body.WriteString(g.pick("x", "aa", "$(aa)", "`ff`", "E x", " E", "\\", "x\\", "\\E", "$x", "'", `"`, "(", "# x\\", "$(ff # x\\", ")", "E\\", "\tE", "EE", "${x:-$(cc)}", "$((1))", "\\$(aa)", "\\`aa\\`", "", "${x:-'}", "$(", "F", "aa; ff", "${x:-\"", "$'", "}"))
		body.WriteString("\n")
	}
	if dash != "" {
		body.WriteString(g.pick("\t", "", "\t\t"))
	}
	body.WriteString(d.ends)
	if !g.rarely(12) {
		body.WriteString("\n")
	}
	g.pending = append(g.pending, body.String())
}
