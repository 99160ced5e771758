package shell_test

func (g *grammar) subshell() {
	g.put("(")
	g.inner()
	g.put(")")
}

// body writes a list that is ended by a reserved word.
func (g *grammar) body() {
	g.list(2)
	g.put(g.pick(";", "\n", ";\n", "\\\n;", " # x\n", " # x\\\n", "&"))
	g.flush()
}

func (g *grammar) group() {
	g.put("{ ")
	g.body()
	g.put("}")
}

func (g *grammar) conditional() {
	g.put("if ")
	g.body()
	g.put("then ")
	g.body()
	if g.rarely(3) {
		g.put("elif ")
		g.body()
		g.put("then ")
		g.body()
	}
	if g.rarely(3) {
		g.put("else ")
		g.body()
	}
	g.put("fi")
}

func (g *grammar) loop() {
	switch g.choices(4) {
	case 0:
		g.put("while ", g.pick("oo", "pp x", "! aa", "[[ a == b ]]"), "; do ")
	case 1:
		g.put("for ((", g.pick("i=0;i<2;i++", ";0;", "x=0\n;0;\n"), "))", g.pick(";", "\n", " "), "do ")
	default:
		g.put("for ", g.pick("x", "y", "x\\\n"), g.pick(" in a b; ", " in a # c\n", "; ", " in a\\\n; ", " in {a,b}; ", "\nin a\n", " in; ", " in a # \\\n"), "do ")
	}
	g.body()
	g.put("done")
}

func (g *grammar) selection() {
	g.put("case ")
	g.word()
	g.put(g.pick(" in ", " in\n", "\nin ", " in # c\n", " in # c\\\n"))
	for range 1 + g.choices(2) {
		g.put(g.pick("", "("), g.pick("*", "x", "a|*", "[a-z]*", "'*'", "\"x\"|*", "x\\\n|*", "\\*", "$(aa)", "esac x", "@(a|*)", "-*", "$x|*"), ")")
		g.blank()
		g.body()
		g.put(g.pick(";;", ";&", ";;&", ";; # x\\\n", ";;\n"))
		g.flush()
	}
	g.put(" esac")
}

func (g *grammar) test() {
	g.put("[[ ")
	g.put(g.pick("a", "x == y", "$x", "a =~ b", "a =~ (b|c)", "-n x", "! a", "( a )", "a && b", "a || $(aa)", "a < b", "a\n&& b", "x == [a]*", "a =~ \\(", "a =~ '('", "$x =~ ^[a-z]+$", "a =~ # ", "1 -eq 1", "a == # ", "a =~ (a # b)", "a =~ a|b", "-f #", "a = !(b)", "a =~ [\"]\"]", "a == a\\\nb", "a =~ [[:space:]](a)", "a =~ [(]", "a == ;", "a =~ ;", "a =~ $(aa)"))
	g.put(" ]]")
}

func (g *grammar) arithmetic() {
	switch g.choices(4) {
	case 0:
		g.put("let ", g.pick("x=1", "'x = 1'", "x++", `"1 << 2"`, "1", "x=(1)", "x=#", "a[0]=1"))
	case 1:
		g.put("((", g.arith(), ") )")
	case 2:
		g.put("( (")
		g.inner()
		g.put("))")
	default:
		g.put("((", g.arith(), "))")
	}
}

func (g *grammar) function() {
	name := g.pick("f", "g", "f-x", "f", "hh")
	g.put(g.pick(name+"() ", "function "+name+" ", "function "+name+"() ", name+" ( ) ", name+"()\n", "function "+name+"\n", name+"() # x\\\n", "function "+name+" # x\n", name+"\\\n() "))
	switch g.choices(4) {
	case 0:
		g.put("(")
		g.inner()
		g.put(")")
	case 1:
		g.conditional()
	default:
		g.group()
	}
	if g.choices(3) > 0 {
		g.put(g.pick("; ", "\n"))
		g.flush()
		g.put(name)
		g.space()
		g.word()
	}
}

func (g *grammar) coprocess() {
	g.put("coproc ")
	switch g.choices(3) {
	case 0:
		g.put("N ")
		g.group()
	case 1:
		g.group()
	default:
		g.simple()
	}
}
