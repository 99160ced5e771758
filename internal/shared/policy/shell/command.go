package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// run visits one simple command.
func (r *reader) run(words []word) {
	for len(words) > 0 && !words[0].known {
		if !r.step(0) {
			return
		}
		r.markOpaque("the program is only known when it runs: " + words[0].show())
		if !words[0].splits {
			return
		}
		words = words[1:] // it may be no word at all
	}
	if len(words) == 0 || !r.step(len(words)) {
		return
	}
	program, args := words[0].text, words[1:]
	r.line.commands = append(r.line.commands, command{program, args})
	if strings.Contains(program, "/") && !isSystemPath(program) || strings.HasPrefix(program, "~") {
		r.markOpaque("runs the file " + excerpt(program))
	}
	r.arguments(base(program), args)
}

// base returns the name of a program without its directory.
func base(program string) string {
	if program == "" {
		return ""
	}
	return path.Base(program)
}

// isSystemPath reports whether a path is in a directory of installed programs.
func isSystemPath(program string) bool {
	if path.Clean(program) != program {
		return false
	}
	switch path.Dir(program) {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/local/go/bin", "/lib", "/lib64":
		return true
	}
	return false
}

// arguments visits the arguments of a program.
func (r *reader) arguments(name string, args []word) {
	program := unversioned(name)
	switch {
	case wrappers[program] != nil:
		r.wrapper(program, args)
	case shells[program]:
		r.shell(program, args)
	case program == "find":
		r.find(args)
	case program == "python" || program == "pythonw":
		r.python(name, args)
	case isLauncher(program):
		if !asksVersion(args) {
			r.skipWords(append([]word{literal(name)}, args...), name+" runs code or programs that are not followed")
		}
	case !r.builtin(name, args):
		r.launchOptions(name, args)
	}
}

// asksVersion reports whether a program is only asked about itself.
func asksVersion(args []word) bool {
	return len(args) == 1 && args[0].known && listed(" --version -V --help -h -version -v -help ", args[0].text)
}

// followed returns a pattern for the words between a program and the program that it runs. A space in the pattern
// matches the end of a word.
func followed(words string) expression {
	return lazy("^(?:" + strings.ReplaceAll(words, " ", "\x00") + ")")
}

// wrappers are the programs that run another one, with the options that are followed. Every other
// option makes the line opaque.
var wrappers = map[string]expression{
	"env":     followed(`(-[i0v]+ |-[i0v]*[uC] [^ ]+ )*(-- )?`),
	"sudo":    followed(`(-[AbEHKklnPSv]+ |-[AbEHKklnPSv]*[CDghpRTtuU] [^- ][^ ]* )*(-- )?`),
	"nice":    followed(`(-[0-9]+ |-n [^ ]+ )*(-- )?`),
	"nohup":   followed(`(-- )?`),
	"time":    followed(`(-[apqvV]+ |-[fo] [^ ]+ )*(-- )?`),
	"timeout": followed(`(-[fpv]+ |-[fpv]*[ks] [^ ]+ )*(-- )?[0-9.]+[smhd]? `),
	"exec":    followed(`(-[cl]+ |-[cl]*a [^ ]+ )*(-- )?`),
	"builtin": followed(`(-- )?`),
	"command": followed(`(-p )*(-- )?`),
	"xargs":   followed(`(-[0rtxpo]+ |-[0rtxpo]*[ILnPsdEa] [^- ][^ ]* |-[ILnP][^ ]+ )*(-- )?`),
}

// after returns the rest of the words after a match of the pattern. It fails if the pattern does not match, or if the
// next word is an option.
func after(pattern expression, args []word) (rest []word, ok bool) {
	text := joined(args)
	match := pattern().FindStringIndex(text)
	if match == nil {
		return args, false
	}
	rest = args[strings.Count(text[:match[1]], "\x00"):]
	return rest, len(rest) == 0 || !rest[0].isOption() && rest[0] != literal("-")
}

// joined returns the words before the first that may be several words, each with its end. A word that is not known ends
// in a character that no pattern matches.
func joined(args []word) string {
	var text strings.Builder
	for _, w := range args {
		switch {
		case w.known:
			text.WriteString(w.text + "\x00")
		case !w.splits:
			text.WriteString(w.text + "\x01\x00")
		default:
			return text.String()
		}
	}
	return text.String()
}

// wrapper visits the program that a wrapper runs.
func (r *reader) wrapper(name string, args []word) {
	if name == "command" && len(args) > 0 && (args[0].text == "-v" || args[0].text == "-V") {
		return // prints the path of a program
	}
	rest, ok := after(wrappers[name], args)
	switch {
	case !ok && name == "xargs":
		r.skipWords(append(slices.Clip(args), anything), "xargs has options that are not followed")
	case !ok:
		r.assignments(args)
		r.skipWords(args, name+" has options that are not followed")
	case name == "xargs":
		r.xargs(args[:len(args)-len(rest)], rest)
	default:
		for (name == "env" || name == "sudo") && len(rest) > 0 && strings.Contains(rest[0].text, "=") {
			r.assignments(rest[:1])
			rest = rest[1:]
		}
		r.run(rest)
	}
}

// find visits the commands of find.
func (r *reader) find(args []word) {
	for i, w := range args {
		if w.splits {
			r.markOpaque("find has arguments that are only known when it runs: " + w.show())
		}
		if w.known && listed(" -exec -execdir -ok -okdir ", w.text) && r.step(len(args)-i) {
			r.run(r.replaced(untilEnd(args[i+1:]), "{}"))
		}
	}
}

// untilEnd returns the words before the end of a command of find.
func untilEnd(args []word) []word {
	for i, w := range args {
		if w.known && (w.text == ";" || w.text == "+" && i > 0 && strings.Contains(args[i-1].text, "{}")) {
			return args[:i]
		}
	}
	return args
}

// replaced returns the words. Words with the placeholder are known only at run time. A word that looks like a command
// line is parsed, too.
func (r *reader) replaced(args []word, placeholder string) []word {
	all := make([]word, len(args))
	for i, w := range args {
		if before, _, ok := strings.Cut(w.text, placeholder); ok && placeholder != "" {
			if strings.ContainsAny(w.text, " ;&|") && r.step(len(w.text)/8) {
				r.script(w.text)
			}
			w = word{text: before, splits: w.splits}
		}
		all[i] = w
	}
	return all
}

// xargs visits the command of xargs, which gets more words than are shown.
func (r *reader) xargs(options, command []word) {
	placeholder := ""
	for i, w := range options {
		if w.text == "-I" {
			placeholder = options[i+1].text
		} else if strings.HasPrefix(w.text, "-I") {
			placeholder = w.text[2:]
		}
	}
	if len(command) > 0 { // without a command it runs echo
		r.run(append(r.replaced(command, placeholder), anything))
	}
}

// shells are programs that run such command lines.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "ash": true, "zsh": true, "ksh": true}

// commandOption matches the options of a shell up to a command line. They load nothing.
var commandOption = followed(`(-[aefluvx]+ |-[aefluvx]*o pipefail )*-[aefluvx]*c[aefluvx]* (-[aefluvx]+ )*(-- )?`)

// shell visits a shell: sh -c 'line'. Any other use is opaque. If the word after -c begins with a minus or a plus, it
// is another option (sh -c +x 'rm y'), and the line is a later word.
func (r *reader) shell(name string, args []word) {
	if asksVersion(args) {
		return
	}
	rest, ok := after(commandOption, args)
	if !ok || len(rest) == 0 || !rest[0].known || strings.HasPrefix(rest[0].text, "+") {
		r.skipWords(args, name+" runs commands that are not shown")
		if strings.Contains(r.text, "<<") { // they may be in a here-document
			r.skip(r.text, name+" runs commands that are not shown")
		}
		return
	}
	outer := r.dialect
	defer func() { r.dialect = outer }()
	r.dialect = POSIX
	if name == "bash" {
		r.dialect = Bash
	}
	r.script(rest[0].text)
}

// first returns the first word if it is known.
func first(words []word) string {
	if len(words) == 0 || !words[0].known {
		return ""
	}
	return words[0].text
}

// A word is an argument of a program, as far as the line shows it.
type word struct {
	// text is the value without quotes. If the word is not known, it is the beginning that is certain.
	text string
	// known is set if text is the complete value.
	known bool
	// splits is set if the word may become no word, or several.
	splits bool
}

// literal returns a word with a known value.
func literal(text string) word { return word{text: text, known: true} }

// anything is any number of words that are known only at run time.
var anything = word{splits: true}

// isOption reports whether the word is an option.
func (w word) isOption() bool { return len(w.text) > 1 && w.text[0] == '-' }

// show returns the word for a reason.
func (w word) show() string {
	if w.known && w.text == "" {
		return `""`
	}
	if w.known {
		return excerpt(w.text)
	}
	return excerpt(w.text) + "…"
}

// readWords reads words. A word with braces is split at them.
func readWords(all []*syntax.Word) []word {
	var read []word
	for _, w := range all {
		one := readWord(w)
		if braced(w) {
			read = append(read, anything)
			if !one.known {
				continue
			}
			for piece := range strings.FieldsFuncSeq(one.text, func(c rune) bool { return c == '{' || c == '}' || c == ',' }) {
				read = append(read, literal(piece))
			}
			continue
		}
		read = append(read, one)
	}
	return read
}

// braced reports whether bash may make several words of one: {a,b}, {1..9}.
func braced(w *syntax.Word) bool {
	var bare strings.Builder
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			bare.WriteString(lit.Value)
		}
	}
	_, rest, open := strings.Cut(bare.String(), "{")
	return open && strings.Contains(rest, "}") && (strings.Contains(rest, ",") || strings.Contains(rest, ".."))
}

// readWord removes quotes.
func readWord(w *syntax.Word) word {
	if w == nil {
		return literal("")
	}
	v := value{known: true}
	for _, p := range w.Parts {
		v.part(p)
	}
	return word{text: v.text.String(), known: v.known, splits: v.splits}
}

// A value collects the parts of a word.
type value struct {
	text   strings.Builder
	known  bool
	splits bool
}

func (v *value) unknown() { v.known = false }

// add appends text, unless an earlier part is unknown.
func (v *value) add(text string) {
	if v.known {
		v.text.WriteString(text)
	}
}

func (v *value) part(p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit:
		v.bare(p.Value)
	case *syntax.SglQuoted:
		v.single(p)
	case *syntax.DblQuoted:
		v.double(p)
	case *syntax.ParamExp, *syntax.CmdSubst:
		v.unknown()
		v.splits = true
	default: // arithmetic, process substitution, patterns
		v.unknown()
	}
}

// bare reads text outside quotes.
func (v *value) bare(s string) {
	text, pattern := unescape(s, func(byte) bool { return true })
	if pattern {
		before, _, _ := strings.Cut(text, "*")
		before = before[:min(len(before), strings.IndexAny(text, "*?["))]
		v.add(before)
		v.unknown()
		return
	}
	v.add(text)
}

func (v *value) single(p *syntax.SglQuoted) {
	if !p.Dollar {
		v.add(p.Value)
		return
	}
	text, ok := decode(p.Value)
	if !ok {
		v.unknown()
		return
	}
	v.add(text)
}

// decode decodes the text between the quotes of $'…'. It fails if an escape is not of the form that
// Go and all shells read alike.
func decode(s string) (string, bool) {
	var b strings.Builder
	for s != "" {
		c, multibyte, rest, err := strconv.UnquoteChar(s, '\'')
		switch {
		case err != nil || c == 0: // a NUL ends the string in some shells
			return "", false
		case multibyte:
			b.WriteRune(c)
		default:
			b.WriteByte(byte(c)) //nolint:gosec // of one byte, as it is not multibyte
		}
		s = rest
	}
	return b.String(), true
}

// double reads double quotes. The content is one word, except for "$@".
func (v *value) double(p *syntax.DblQuoted) {
	for _, part := range p.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			text, _ := unescape(lit.Value, func(c byte) bool { return strings.IndexByte("$`\"\\\n", c) >= 0 })
			v.add(text)
			continue
		}
		v.unknown()
		if exp, ok := part.(*syntax.ParamExp); ok && isAllItems(exp) {
			v.splits = true
		}
	}
}

// isAllItems reports whether an expansion has all items: "$@", "${a[@]}".
func isAllItems(p *syntax.ParamExp) bool {
	if p.Param != nil && p.Param.Value == "@" || p.Names != 0 || p.Excl {
		return true
	}
	index, ok := p.Index.(*syntax.Word)
	return ok && index.Lit() == "@"
}

// unescape removes backslashes that quote a character, and reports whether the
// rest is a pattern for file names.
func unescape(s string, quotes func(byte) bool) (text string, pattern bool) {
	if !strings.ContainsAny(s, "\\*?[") {
		return s, false
	}
	var b strings.Builder
	bracket := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) && quotes(s[i+1]) {
			i++
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
			continue
		}
		pattern = pattern || c == '*' || c == '?' || c == ']' && bracket
		bracket = bracket || c == '['
		b.WriteByte(c)
	}
	return b.String(), pattern
}
