package shell

import "strings"

// sed looks for scripts that may run commands.
func (r *reader) sed(args []word) {
	for _, w := range r.sedScripts(args) {
		if sedRuns(w.text) {
			r.hide("sed runs commands by its script")
		}
		if !w.known {
			r.hide("sed runs a script that is only known when it runs: " + w.show())
		}
	}
}

// sedScripts are the scripts that are written out.
func (r *reader) sedScripts(args []word) []word {
	var scripts, others []word
	for len(args) > 0 {
		w := args[0]
		args = args[1:]
		value, expression := valueOf(" -e --expression ", append([]word{w}, args[:min(1, len(args))]...))
		switch {
		case w.flag() && expression:
			scripts = append(scripts, value)
			if w.text == "-e" || w.text == "--expression" {
				args = args[min(1, len(args)):]
			}
		case !w.flag():
			others = append(others, w)
		case !sedOption(w):
			r.hide("sed runs a script that is not shown, or is given options that are not known here: " + w.show())
		}
	}
	if len(scripts) == 0 && len(others) > 0 {
		return others[:1]
	}
	return scripts
}

// sedOption reports whether an option has nothing to do with scripts.
func sedOption(w word) bool {
	if strings.HasPrefix(w.text, "-i") || strings.HasPrefix(w.text, "--in-place") {
		return true
	}
	return w.known && (strings.Trim(w.text, "-nErsuz") == "" ||
		listed(" --quiet --silent --regexp-extended --null-data --separate --unbuffered --posix --debug --sandbox --version --help ", w.text))
}

// sedRuns reports whether a script of sed may run commands: by e, or by the flag
// e of s. What it cannot read may.
func sedRuns(script string) bool {
	for {
		script = strings.TrimLeft(script, " \t\n;{}!")
		if script == "" {
			return false
		}
		rest, ok := sedAddress(script)
		if !ok {
			return true
		}
		if rest != script {
			script = strings.TrimLeft(rest, " \t,!~+0123456789$")
			continue
		}
		var runs bool
		if script, runs = sedCommand(script); runs {
			return true
		}
	}
}

// sedAddress skips an address.
func sedAddress(s string) (rest string, ok bool) {
	switch c := s[0]; {
	case c == '/':
		return sedSection(s[1:], '/')
	case c == '\\' && len(s) > 1:
		return sedSection(s[2:], s[1])
	case c >= '0' && c <= '9' || c == '$' || c == ',':
		return s[1:], true
	}
	return s, true
}

// sedSection skips to the delimiter that ends a section. Shells' seds differ in
// whether brackets hide it.
func sedSection(s string, delimiter byte) (rest string, ok bool) {
	bracket := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			bracket = true
		case ']':
			bracket = false
		case delimiter:
			return s[i+1:], !bracket
		}
	}
	return "", false
}

// sedCommand skips a command and reports whether it runs something.
func sedCommand(s string) (rest string, runs bool) {
	switch c := s[0]; {
	case c == 's' || c == 'y':
		return sedSubstitution(s)
	case strings.IndexByte("aicrRwWbtT:", c) >= 0:
		_, rest, _ = strings.Cut(strings.ReplaceAll(s, "\\\n", ""), "\n")
		if strings.IndexByte("btT", c) >= 0 {
			if end := strings.IndexAny(s, ";\n}"); end >= 0 {
				return s[end:], false
			}
		}
		return rest, false
	case strings.IndexByte("dDgGhHlnNpPqQxz=F#", c) >= 0:
		if c == '#' {
			_, rest, _ = strings.Cut(s, "\n")
			return rest, false
		}
		return strings.TrimLeft(s[1:], " 0123456789"), false
	}
	return "", true // e, or something unknown
}

// sedSubstitution skips s/…/…/flags.
func sedSubstitution(s string) (rest string, runs bool) {
	if len(s) < 2 {
		return "", true
	}
	rest, ok := sedSection(s[2:], s[1])
	if !ok {
		return "", true
	}
	if rest, ok = sedSection(rest, s[1]); !ok {
		return "", true
	}
	flags := rest
	if end := strings.IndexAny(rest, ";\n} \t"); end >= 0 {
		flags, rest = rest[:end], rest[end:]
	} else {
		rest = ""
	}
	file := strings.IndexByte(flags, 'w')
	if file >= 0 {
		_, rest, _ = strings.Cut(rest, "\n")
		flags = flags[:file]
	}
	return rest, strings.ContainsRune(flags, 'e')
}
