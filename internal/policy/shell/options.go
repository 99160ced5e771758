package shell

import (
	"slices"
	"strings"
)

// launching are the options by which a program runs another.
type launching struct {
	// short and long are options whose value is a command line: letters, and names
	// with a space around each.
	short, long string
	// reads are options that make the program run, load or read what the line does
	// not show. They make the line opaque.
	reads, readsLong string
	// values are the letters of other options with a value: what follows one of them
	// in a bundle is its value.
	values string
	// others are long options that begin like one of the above and are not it.
	others string
}

// launchers are programs that run others by an option. Options are also found in
// bundles (-xI cmd), with their value (-Icmd, --filter=cmd), and abbreviated as
// getopt_long allows it (--use-comp cmd).
var launchers = map[string]launching{
	"tar":     {short: "IF", long: " --use-compress-program --to-command --checkpoint-action --info-script --new-volume-script --rsh-command --rmt-command ", values: "bCfgHKLNTVX", others: " --checkpoint "},
	"bsdtar":  {long: " --use-compress-program ", values: "bCfIsTX"},
	"cpio":    {long: " --rsh-command --rmt-command ", values: "CDEFHIMOR"},
	"rsync":   {short: "e", long: " --rsh --rsync-path ", reads: "M", readsLong: " --remote-option --daemon --config ", values: "BTf@"},
	"su":      {short: "c", long: " --command --session-command ", values: "gGswT"},
	"runuser": {short: "c", long: " --command --session-command ", values: "gGsuwT"},
	"script":  {short: "c", long: " --command ", values: "EBIOTmot"},
	"flock":   {short: "c", long: " --command ", values: "wE"},
	"split":   {long: " --filter ", values: "abClnt"},
	"sort":    {long: " --compress-program ", values: "kotST"},
	"rg":      {long: " --pre --hostname-bin ", values: "ABCEMTdefgjmrt", others: " --pre-glob --pretty "},
	"ag":      {long: " --pager "},
	"ack":     {long: " --pager "},
	"bat":     {long: " --pager ", values: "lHrmn"},
	"batcat":  {long: " --pager ", values: "lHrmn"},
	"fzf":     {long: " --preview --bind --become ", readsLong: " --listen "},
	"npx":     {short: "c", long: " --call ", values: "pw"},
	"npm": {
		short: "c", long: " --call --script-shell --browser --git --editor --viewer --shell ", values: "Cw",
		readsLong: " --node-options --userconfig --globalconfig --init-module ", others: " --global --git-tag-version --node-version ",
	},
	"pnpm":        {short: "c", long: " --script-shell ", values: "Cw"},
	"man":         {short: "PH", long: " --pager --html ", reads: "C", readsLong: " --config-file ", values: "LMRSTeEmprsX"},
	"nix-shell":   {long: " --run --command "},
	"zip":         {long: " --unzip-command ", readsLong: " -TT ", values: "bintx"},
	"wget":        {long: " --use-askpass ", reads: "e", readsLong: " --execute --config ", values: "aABDIoOPQRtTUwXi"},
	"curl":        {reads: "K", readsLong: " --config --engine ", values: "ACDEFHPQTUXYbcdemortuwxyz"},
	"scp":         {short: "S", reads: "oFD", values: "JcliPX"},
	"sftp":        {short: "S", reads: "oFDbs", values: "BcJilPRX"},
	"ssh-copy-id": {reads: "oF", values: "ip"},
	"mosh":        {long: " --ssh --server --client --experimental-remote-ip "},
	"tcpdump":     {short: "z", values: "BcCDEFGijlMrsTuVwWy"},
	"dpkg":        {long: " --pre-invoke --post-invoke --status-logger "},
	"apt":         {reads: "oc", readsLong: " --option --config-file ", values: "at"},
	"apt-get":     {reads: "oc", readsLong: " --option --config-file ", values: "at"},
	"aptitude":    {reads: "o", values: "t"},
	"pip":         {long: " --editor --python "},
	"gh":          {long: " --pager "},
	"ctags":       {long: " --_interactive ", readsLong: " --options --options-maybe "},
	"xterm":       {short: "e"},
	"chronic":     {short: "c"},
	"make":        {reads: "fE", readsLong: " --file --makefile --eval ", values: "CIloOW"},
	"gmake":       {reads: "fE", readsLong: " --file --makefile --eval ", values: "CIloOW"},
	"ninja":       {reads: "f", values: "Cjkldt"},
	"cargo":       {readsLong: " --config "},
	"install":     {long: " --strip-program "},
	"openssl":     {readsLong: " -engine -provider -provider-path -config "},
}

// goLaunches are the options of go, which has no bundles and takes one dash or two.
const goLaunches = " -exec --exec -toolexec --toolexec -vettool --vettool -fixtool --fixtool "

// goFlags are options of go whose value is options for a linker or a compiler.
const goFlags = " -ldflags --ldflags -gccgoflags --gccgoflags "

// plainGoFlags reports whether options for a linker or a compiler name no program.
func plainGoFlags(value word) bool {
	return value.known && !strings.Contains(value.text, "-ext") && !strings.Contains(value.text, "-B")
}

// sshOptions are the options of ssh. They end where the command for the other side
// begins, so they are not looked at like those of other programs.
var sshOptions = launching{reads: "oFEIS", values: "BbcDeiJLlmOPpQRWw"}

// launches looks for options by which a program runs another.
func (r *reader) launches(name string, args []word) {
	if name == "gtar" {
		name = "tar"
	}
	l, ok := launchers[name]
	if !ok {
		return
	}
	if name == "tar" || name == "bsdtar" {
		args = spelled(args, l.short+l.values)
	}
	for i, w := range args {
		if r.spent() {
			return
		}
		switch {
		case w.known && w.text == "--":
			return
		case name == "zip" && strings.Contains(w.text, "TT"):
			r.hide("zip tests its archive with what is not shown: " + w.show())
			r.tryAll(args[i+1:])
		case w.flag():
			r.option(name, l, w, args[i+1:])
		}
	}
}

// option looks at one option.
func (r *reader) option(name string, l launching, w word, rest []word) {
	if _, found := longOption(l.readsLong, l.others, w, rest); found {
		r.hide(name + " runs or reads what is not shown: " + w.show())
	}
	if value, found := longOption(l.long, l.others, w, rest); found {
		r.launch(name, w, value)
	}
	letter, value := bundled(w, rest, l.short+l.reads, l.values)
	switch {
	case letter == 0:
	case strings.IndexByte(l.reads, letter) >= 0:
		r.hide(name + " runs or reads what is not shown: " + w.show())
	default:
		r.launch(name, w, value)
	}
}

// launch reads a command line that a program is given.
func (r *reader) launch(name string, option, value word) {
	if !value.known {
		r.hide(name + " runs what is only known when it runs: " + option.show())
		return
	}
	r.script(strings.TrimPrefix(value.text, "exec=")) // of tar --checkpoint-action
}

// longOption is the value of a long option, which may be abbreviated, if the word
// is one of those.
func longOption(options, others string, w word, rest []word) (word, bool) {
	name, value, bound := strings.Cut(w.text, "=")
	if len(name) < 3 || options == "" || listed(others, name) || !w.known && !bound && !strings.HasPrefix(name, "--") {
		return word{}, false
	}
	for option := range strings.FieldsSeq(options) {
		whole := name == option
		if !whole && (!strings.HasPrefix(name, "--") || !strings.HasPrefix(option, name)) {
			continue
		}
		switch {
		case bound:
			return word{text: value, known: w.known}, true
		case !w.known || len(rest) == 0:
			return word{known: w.known}, true
		}
		return rest[0], true
	}
	return word{}, false
}

// bundled is the letter of the first wanted option in a word, and its value.
func bundled(w word, rest []word, wanted, values string) (letter byte, value word) {
	if strings.HasPrefix(w.text, "--") {
		return 0, word{}
	}
	for i := 1; i < len(w.text); i++ {
		c := w.text[i]
		switch {
		case strings.IndexByte(wanted, c) >= 0:
			if i+1 < len(w.text) || !w.known {
				return c, word{text: w.text[i+1:], known: w.known}
			}
			if len(rest) == 0 {
				return c, literal("")
			}
			return c, rest[0]
		case strings.IndexByte(values, c) >= 0:
			return 0, word{}
		}
	}
	return 0, word{}
}

// spelled spells the old style of tar, whose first word is letters without a dash
// and whose values follow in their order, in the new one.
func spelled(args []word, values string) []word {
	if len(args) == 0 || !args[0].known || strings.HasPrefix(args[0].text, "-") || strings.Contains(args[0].text, "=") {
		return args
	}
	var all []word
	rest := args[1:]
	for _, c := range args[0].text {
		all = append(all, literal("-"+string(c)))
		if strings.ContainsRune(values, c) && len(rest) > 0 {
			all, rest = append(all, rest[0]), rest[1:]
		}
	}
	return append(all, rest...)
}

// goOptions reads the options by which go runs programs.
func (r *reader) goOptions(args []word) {
	for i, w := range args {
		if value, found := valueOf(goLaunches, args[i:]); found && w.flag() {
			r.launch("go", w, value)
		}
		if value, found := valueOf(goFlags, args[i:]); found && w.flag() && !plainGoFlags(value) {
			r.hide("go runs a linker or compiler that is not shown: " + w.show())
		}
	}
	if i := slices.IndexFunc(args, func(w word) bool { return w.known && w.text == "env" }); i >= 0 {
		if slices.ContainsFunc(args, func(w word) bool { return !w.known && w.text == "" }) {
			r.hide("go env may set what is only known when it runs")
		}
		r.pairs(args[i+1:]) // go env -w NAME=value
	}
}
