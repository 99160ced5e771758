package shell_test

import "strings"

// A grammar writes command lines: each is a sequence of choices, so that the same
// choices give the same line.
type grammar struct {
	choices func(n int) int // one of 0 to n-1
	text    strings.Builder
	depth   int
	pending []string // bodies of here-documents that begin at the next newline
}

// maxGrammarDepth bounds how deep a generated line is nested.
const maxGrammarDepth = 3

// generate writes one command line.
func generate(choices func(n int) int) string {
	g := &grammar{choices: choices}
	g.list(3)
	g.flush()
	return g.spoil(g.text.String())
}

func (g *grammar) put(parts ...string) {
	for _, p := range parts {
		g.text.WriteString(p)
	}
}

func (g *grammar) pick(options ...string) string { return options[g.choices(len(options))] }

// rarely is true once in n times.
func (g *grammar) rarely(n int) bool { return g.choices(n) == n-1 }

// spoil changes a character, once in a while: most errors are near what is right.
func (g *grammar) spoil(line string) string {
	for g.rarely(8) && line != "" {
		at := g.choices(len(line))
		piece := g.pick("\\", "'", `"`, "\n", "#", "$", "(", ")", "`", ";", "&", "|", "<", "{", "}", "!", " ", "\t", "\r", "\u00a0", "\\\n", "#\\\n", " # \\\n",
			"=", "[", "]", "*", "?", "aa", "<<", "<<-", "((", "))", "[[", "]]", "\x00", "\v", "\f", "esac", "fi", "done", "}", "\n}", ",", "..", "^", "%", "@", "+", "-", ":", "\x7f", "\u2028")
		if strings.Contains(piece, "\x00") {
			piece = "" // no argument can hold NUL
		}
		if g.choices(2) == 0 {
			line = line[:at] + piece + line[at:]
		} else {
			line = line[:at] + piece + line[at+1:]
		}
	}
	return line
}

// newline ends a line, after which the here-documents of the line follow.
func (g *grammar) newline() {
	g.put("\n")
	g.flush()
}

func (g *grammar) flush() {
	if len(g.pending) == 0 {
		return
	}
	if text := g.text.String(); !strings.HasSuffix(text, "\n") {
		g.put("\n")
	}
	for _, body := range g.pending {
		g.put(body)
	}
	g.pending = nil
}

// list writes commands with something between them.
func (g *grammar) list(most int) {
	for n := 1 + g.choices(most); n > 0; n-- {
		g.blank()
		g.pipeline()
		if n > 1 || g.rarely(3) {
			g.separator()
		}
	}
}

func (g *grammar) separator() {
	switch g.choices(14) {
	case 0, 1, 2:
		g.put(";")
	case 3:
		g.put(" &")
	case 4:
		g.put(" && ")
		g.space()
		g.pipeline()
		g.newline()
	case 5:
		g.put("||")
		g.space()
		g.pipeline()
		g.newline()
	case 6, 7:
		g.comment()
	case 8:
		g.put(" \\\n;")
	case 9:
		g.put(g.pick("", "", "", "\r"))
		g.newline()
	default:
		g.newline()
	}
}

// comment writes a comment and ends the line.
func (g *grammar) comment() {
	g.put(g.pick(" #", "\t#", ";#", "\n#", " \\\n#", "#", "&#", " # ", "; \\\n # "))
	g.put(g.pick("", " ", "hi", " it's", ` a "b`, " $(aa", " `", " <<E", " (", " {", " \\", "\\", " x\\", "\\\\", " \\ ", " '\\", " ${", " #", " \\\\\\", " aa; ff"))
	g.newline()
}

// blank writes what stands between commands.
func (g *grammar) blank() {
	g.put(g.pick("", "", "", " ", "\t", "\\\n", " \\\n ", "\n", "\n\n"))
	if strings.HasSuffix(g.text.String(), "\n") && !strings.HasSuffix(g.text.String(), "\\\n") {
		g.flush()
	}
}

// space writes what stands between words.
func (g *grammar) space() {
	g.put(g.pick(" ", " ", " ", " ", " ", "\t", " \\\n", "\\\n ", "  ", " \t "))
}

func (g *grammar) pipeline() {
	if g.rarely(8) {
		g.put(g.pick("! ", "! ", "! ", "! ", "time ", "time ", "time ", "time -p ", "time -p ", "! ! ", "time ! ", "! time ", "time -- ", "!\\\n ", "time\\\n "))
	}
	g.command()
	for g.rarely(6) {
		g.put(g.pick("|", " | ", "|&", "|\\\n", " |\n"))
		g.command()
	}
}

func (g *grammar) command() {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > maxGrammarDepth || g.choices(4) > 0 {
		g.simple()
		return
	}
	compounds := []func(){
		g.subshell, g.group, g.conditional, g.loop, g.loop, g.selection, g.test, g.arithmetic, g.function, g.function, g.coprocess, g.definition, g.definition, g.nested, g.odd, g.builtinOptions,
	}
	compounds[g.choices(len(compounds))]()
	if g.rarely(6) {
		g.redirect()
	}
}

// name is the name of a program. None of them exists, on any machine: should a line
// find a way around the empty PATH, it still runs nothing.
func (g *grammar) name() string { return g.pick("aa", "ff", "cc", "oo", "pp", "rr", "gg", "hh") }

// simple writes a simple command.
func (g *grammar) simple() {
	for g.rarely(5) {
		g.assignment()
		g.space()
	}
	if g.rarely(12) {
		g.redirect()
		g.space()
	}
	if g.rarely(10) {
		g.put(g.pick("command ", "builtin ", "exec ", "command -- ", "exec -a x ", "command \\\n"))
	}
	g.programName()
	for g.choices(2) > 0 {
		g.space()
		g.word()
		if g.rarely(14) {
			g.space()
			g.redirect()
		}
	}
}
