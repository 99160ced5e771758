package shell

import "strings"

// settings are the keys of git that run nothing, in lower case.
const settings = ` user.* author.* committer.* color.* column.* advice.* core.quotepath core.autocrlf core.eol core.filemode core.longpaths core.symlinks core.ignorecase
 core.abbrev core.compression core.sparsecheckout core.safecrlf core.whitespace core.precomposeunicode core.bare core.commentchar init.defaultbranch commit.gpgsign tag.gpgsign push.default
 push.autosetupremote push.followtags pull.rebase pull.ff fetch.prune fetch.parallel rebase.autostash rebase.autosquash merge.conflictstyle merge.ff
 diff.algorithm diff.renames diff.renamelimit diff.colormoved log.date log.decorate log.showsignature status.short status.showuntrackedfiles http.postbuffer http.version
 http.lowspeedlimit http.lowspeedtime safe.directory gc.auto branch.* index.version pack.* feature.* format.pretty checkout.defaultremote rerere.enabled submodule.recurse
 protocol.version transfer.fsckobjects i18n.* clone.defaultremotename maintenance.auto blame.* grep.* `

// git looks for what git is told to run.
func (r *reader) git(args []word) {
	for i, w := range args {
		rest := args[i+1:]
		switch {
		case strings.HasPrefix(w.text, "ext::"):
			r.hide("git runs a transport helper")
		case w.known && w.text == "-c" && len(rest) > 0:
			r.setting(rest[0])
		case strings.HasPrefix(w.text, "--config-env"), strings.HasPrefix(w.text, "--exec-path="), strings.HasPrefix(w.text, "-O"), strings.HasPrefix(w.text, "--template"):
			r.hide("git is told to run what is not shown: " + w.show())
		case strings.HasPrefix(w.text, "--config="):
			r.setting(word{text: w.text[len("--config="):], known: w.known})
		case w.known && w.text == "--config" && len(rest) > 0:
			r.setting(rest[0])
		}
	}
	r.gitCommand(args)
}

// gitCommand looks at the commands of git that run others.
func (r *reader) gitCommand(args []word) {
	for i, w := range args {
		if !w.known {
			continue
		}
		switch w.text {
		case "bisect":
			r.after(args[i+1:], "run")
		case "foreach": // of submodule
			r.evaluateOrHide("git submodule foreach", flagless(args[i+1:]))
		case "filter-branch", "mergetool", "difftool", "daemon", "instaweb", "citool", "gui", "send-email":
			r.hide("git " + w.text + " runs commands of its own")
		case "config":
			r.configure(args[i+1:])
			return
		}
	}
}

// configure looks at settings that are written for later.
func (r *reader) configure(args []word) {
	rest := flagless(args)
	options := args[:len(args)-len(rest)]
	switch {
	case only(options, "--global", "--local", "--system", "--add", "--replace-all", "--type=bool", "--worktree"):
		if len(rest) > 1 && rest[0].text != "get" && rest[0].text != "list" {
			r.write(rest)
		}
	case !only(options[:1], "--get", "--get-all", "--get-regexp", "--list", "-l", "--unset", "--unset-all", "--show-origin", "--name-only"):
		r.hide("git config changes what git runs")
	}
}

// write looks at the key that is set; what it is set to may be anything.
func (r *reader) write(args []word) {
	for _, w := range args {
		if strings.Contains(w.text, ".") || !w.known {
			r.setting(word{text: w.text})
			return
		}
	}
}

// flagless are words without the options that they begin with.
func flagless(args []word) []word {
	for len(args) > 0 && args[0].flag() {
		args = args[1:]
	}
	return args
}

// setting looks at key=value.
func (r *reader) setting(w word) {
	key, value, ok := strings.Cut(w.text, "=")
	key = strings.ToLower(key)
	switch {
	case !ok && w.known && !strings.Contains(key, "."): // git switch -c branch
	case covered(settings, key):
	case w.known && (key == "core.pager" || key == "core.editor" || key == "sequence.editor") && ok:
		r.script(value)
	default:
		r.hide("git may run what is set by " + w.show())
	}
}
