package shell

import "strings"

// awk looks for a program that may run commands. What it cannot be sure of may.
func (r *reader) awk(args []word) {
	for len(args) > 0 {
		w := args[0]
		switch {
		case !w.flag() && w.known:
			if awkRuns(w.text) {
				r.hide("awk runs commands by its program")
			}
			return
		case w.known && (w.text == "-F" || w.text == "-v" || w.text == "--assign" || w.text == "--field-separator"):
			args = args[min(2, len(args)):]
		case strings.HasPrefix(w.text, "-F"), strings.HasPrefix(w.text, "-v"), w.known && w.text == "--", w.known && informs(w):
			args = args[1:]
		default:
			r.hide("awk runs a program that is not shown: " + w.show())
			return
		}
	}
}

// awkRuns reports whether a program of awk may run commands.
func awkRuns(program string) bool {
	program = strings.ReplaceAll(program, "||", "")
	return strings.Contains(program, "system") || strings.ContainsAny(program, "|@")
}
