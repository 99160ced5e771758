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
		case strings.Contains(w.text, "ext::"):
			r.hide("git runs a transport helper")
		case w.known && w.text == "-c" && len(rest) > 0:
			r.setting(rest[0])
		case strings.HasPrefix(w.text, "--config-env"), strings.HasPrefix(w.text, "--exec-path="), strings.HasPrefix(w.text, "-O"), strings.HasPrefix(w.text, "--template"):
			r.hide("git runs what is not shown: " + w.show())
		case strings.HasPrefix(w.text, "--config="):
			r.setting(word{text: w.text[len("--config="):], known: w.known})
		case w.known && w.text == "--config" && len(rest) > 0:
			r.setting(rest[0])
		}
	}
	r.runningCommands(args)
	r.gitOptions(args)
}

// gitOptions are options of any command of git whose value is a command line.
const gitOptions = " --upload-pack --receive-pack --exec --extcmd --open-files-in-pager --sequence-editor --tool "

// gitLaunches are the letters of options that only some commands of git have.
var gitLaunches = map[string]launching{
	"rebase":   {short: "x", values: "sXCS"},
	"clone":    {short: "u", values: "objcS"},
	"difftool": {short: "x", values: "t"},
	"grep":     {reads: "O", values: "ABCefm"},
	"merge":    {reads: "s", values: "mFXS"},
	"pull":     {reads: "s", values: "XSjo"},
}

// plumbing are commands of git that run others, or answer whoever reads them.
const plumbing = ` upload-pack receive-pack upload-archive http-backend shell cvsserver for-each-repo hook merge-index remote-ext remote-fd
 p4 svn archimport cvsimport quiltimport web--browse filter-repo `

// strategies are the merge strategies that git has in itself. Others are programs.
const strategies = " ours recursive resolve octopus subtree ort "

// gitOptions looks at options by which git runs other programs.
func (r *reader) gitOptions(args []word) {
	command, rest := r.gitCommand(args)
	if listed(plumbing, command) {
		r.hide("git " + command + " runs commands of its own")
	}
	l := gitLaunches[command]
	for i, w := range rest {
		if r.spent() || w.known && w.text == "--" {
			return
		}
		if !w.flag() {
			continue
		}
		r.gitLong(command, w, rest[i+1:])
		r.gitLetter(command, l, w, rest[i+1:])
	}
}

// gitLong looks at a long option of git.
func (r *reader) gitLong(command string, w word, rest []word) {
	if value, found := longOption(gitOptions, " --exec-path ", w, rest); found {
		r.launch("git", w, value)
		if strings.HasPrefix(w.text, "--op") {
			r.hide("git opens a pager that is not shown")
		}
	}
	if _, found := longOption(" --template ", "", w, nil); found && (command == "init" || command == "clone") {
		r.hide("git copies hooks that are not shown: " + w.show())
	}
}

// gitLetter looks at the letters of one word of options.
func (r *reader) gitLetter(command string, l launching, w word, rest []word) {
	if command == "clone" && strings.HasPrefix(w.text, "-c") && len(w.text) > 2 {
		r.setting(word{text: w.text[2:], known: w.known})
	}
	if value, found := longOption(" --config ", "", w, rest); found && command == "clone" {
		r.setting(value)
	}
	if value, found := longOption(" --strategy ", "", w, rest); found && (command == "merge" || command == "pull" || command == "rebase") && !listed(strategies, value.text) {
		r.hide("git runs a merge strategy of its own: " + w.show())
	}
	letter, value := bundled(w, rest, l.short+l.reads, l.values)
	switch {
	case letter == 0 || letter == 's' && listed(strategies, value.text):
	case strings.IndexByte(l.reads, letter) >= 0:
		r.hide("git runs what is not shown: " + w.show())
	default:
		r.launch("git", w, value)
	}
}

// gitCommand is the command of git, and what follows it. A command that git does
// not have itself is an alias, or a program git-x.
func (r *reader) gitCommand(args []word) (command string, rest []word) {
	for len(args) > 0 && args[0].flag() {
		used := 1
		if strings.HasPrefix(args[0].text, "--git-dir") {
			r.hide("git reads its settings from elsewhere: " + args[0].show())
		}
		if listed(valued["git"], args[0].text) {
			used = 2
		}
		args = args[min(used, len(args)):]
	}
	if len(args) == 0 {
		return "", nil
	}
	if !listed(gitCommands, first(args)) {
		r.hide("git may run an alias or another program: git " + args[0].show())
	}
	return first(args), args[1:]
}

// gitCommands are the commands that git has itself.
const gitCommands = ` add am annotate apply archimport archive backfill bisect blame branch bugreport bundle cat-file check-attr check-ignore check-mailmap check-ref-format
 checkout checkout-index cherry cherry-pick citool clean clone column commit commit-graph commit-tree config count-objects credential credential-cache
 credential-store cvsexportcommit cvsimport cvsserver daemon describe diagnose diff diff-files diff-index diff-pairs diff-tree
 difftool fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck fsck-objects gc
 get-tar-commit-id grep gui hash-object help history hook http-backend http-fetch http-push imap-send index-pack init init-db instaweb
 interpret-trailers last-modified log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-octopus
 merge-one-file merge-ours merge-recursive merge-recursive-ours merge-recursive-theirs merge-resolve merge-subtree merge-tree mergetool mktag mktree
 multi-pack-index mv name-rev notes p4 pack-objects pack-redundant pack-refs patch-id pickaxe prune prune-packed pull push quiltimport range-diff
 read-tree rebase receive-pack reflog refs remote remote-ext remote-fd remote-ftp remote-ftps remote-http remote-https repack replace replay repo
 request-pull rerere reset restore rev-list rev-parse revert rm send-email send-pack shell shortlog show show-branch show-index show-ref sparse-checkout
 stage stash status stripspace submodule subtree survey svn switch symbolic-ref tag unpack-file unpack-objects update-index update-ref
 update-server-info upload-archive upload-pack url-parse var verify-commit verify-pack verify-tag version web--browse whatchanged worktree write-tree `

// runningCommands looks at the commands of git that run others.
func (r *reader) runningCommands(args []word) {
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
