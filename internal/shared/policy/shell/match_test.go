package shell_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/policy/shell"
)

func TestRunsWithWords(t *testing.T) {
	cases := map[string]struct {
		line, runs string
		want       bool
	}{
		"the word":                               {`git push`, "git push", true},
		"another word":                           {`git pull`, "git push", false},
		"options before":                         {`git -C x --no-pager push`, "git push", true},
		"a value that is not known":              {`git -C "$d" push`, "git push", true},
		"a value that is not known, another":     {`git -C "$d" status`, "git push", false},
		"a word after an option without a value": {`git --no-pager "$x"`, "git push", true},
		"a word after the first":                 {`kubectl get "$x"`, "kubectl get secrets", true},
		"words that may be anything":             {`git $x`, "git push", true},
		"a word that may be anything":            {`git "$x"`, "git push", true},
		"a pattern":                              {`git p*`, "git push", true},
		"braces":                                 {`git {push,origin}`, "git push", true},
		"a message that is not known":            {`git commit -m "$msg"`, "git push", false},
		"a message of a document":                {"git commit -m \"$(cat <<'E'\nx\nE\n)\"", "git push", false},
		"an option that is not known":            {`git $o commit`, "git push", true},
		"words in order":                         {`git remote -v add x y`, "git remote add", true},
		"words out of order":                     {`git add remote`, "git remote add", false},
		"words from elsewhere":                   {`echo push | xargs git`, "git push", true},
		"words from elsewhere, later":            {`echo x | xargs git commit -m`, "git push", false},
		"words that are replaced":                {`ls | xargs -I% git %`, "git push", true},
		"an option":                              {`git push --force origin`, "git push --force", true},
		"an option before":                       {`git --force push`, "git push --force", true},
		"an option with a value":                 {`git push --force-with-lease=x`, "git push --force-with-lease", true},
		"no option":                              {`git push origin`, "git push --force", false},
		"a letter among others":                  {`rm -vrf x`, "rm -r", true},
		"a letter that is not there":             {`rm -v x`, "rm -r", false},
		"a letter in a long option":              {`rm --verbose x`, "rm -r", false},
		"an option that may be anything":         {`rm $x`, "rm -r", true},
		"an option after a word that may split":  {`rm x$y`, "rm -r", true},
		"no option in a word that is one":        {`rm "x$y"`, "rm -r", false},
		"a pattern that begins otherwise":        {`rm -v*`, "rm --recursive", false},
		"an option that begins otherwise":        {`rm -v"$x"`, "rm --recursive", false},
		"through sudo":                           {`sudo -u bob git -c user.name=x push`, "git push", true},
		"quoted":                                 {`git 'pu'sh`, "git push", true},
		"a message that is the word":             {`git commit -m push`, "git push", true}, // too often rather than too rarely
		"a path, by name":                        {`/usr/bin/git push`, "git push", true},
		"a name, by path":                        {`git push`, "/usr/bin/git push", true},
		"a script, by its path":                  {`./deploy.sh prod`, "./deploy.sh prod", true},
		"a script, by its name":                  {`bash ./deploy.sh prod`, "bash deploy.sh", false},
		"nothing":                                {`git push`, "", false},
		"an option of kubectl":                   {`kubectl -n x delete pod y`, "kubectl delete", true},
		"another command of kubectl":             {`kubectl -n "$ns" get pod "$p"`, "kubectl delete", false},
		"an unknown program's options":           {`tool --flag "$x" y`, "tool delete", true},
		"an unknown program's words":             {`tool get "$x"`, "tool delete", false},
		"a line that cannot be read":             {`git push (`, "git push", true},
		"a line that cannot be read, quotes":     {`g"it" pu\sh (`, "git push", true},
		"a line that cannot be read, another":    {`git pull (`, "git push", false},
		"a line that cannot be read, parts":      {`digit pushed (`, "git push", false},
		"a line that cannot be read, xargs":      {`cat x | xargs git (`, "git push", true},
		"a line that cannot be read, parallel":   {`cat x | parallel git (`, "git push", true},
		"a line that cannot be read, a variable": {`git $x (`, "git push", true},
		"a line that cannot be read, an option":  {`rm -rf x (`, "rm -r", true},
		"a long line":                            {strings.Repeat("x", shell.MaxLine) + "; git push", "git push", true},
		"a module":                               {`python3 -m pip install x`, "pip install", true},
		"an alias, with its words":               {`alias p='git push'`, "git push", true},
		"a function that hands its words on":     {`f() { git "$@"; }; f push`, "git push", true},
		"a program that is split over env":       {`env -S git push`, "git push", true},
		"a program that is given to env as one":  {`env -S 'git push'`, "git push", true},
		"the example of the docs":                {`cd x && sudo git -C y push -f`, "git push -f", true},
		"a program beside others":                {`git log; curl x`, "git log", true},
		"another program":                        {`gitx push`, "git push", false},
		"a name of another case":                 {`Git push`, "git push", false},
		"a here-document for a shell":            {"bash -s <<'E'\ngit push\nE", "git push", true},
		"a here-document for another":            {"cat <<'E'\ngit push\nE", "git push", false},
		"lines within lines, too deep to follow": {nest(12, "git push"), "git push", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wanted := strings.Fields(tc.runs + " ")
			program := ""
			if len(wanted) > 0 {
				program, wanted = wanted[0], wanted[1:]
			}
			if got := shell.Read(tc.line, shell.Bash).Runs(program, wanted...); got != tc.want {
				t.Errorf("%q runs %s = %t", tc.line, tc.runs, got)
			}
		})
	}
}

// nest is a line in sh -c in sh -c.
func nest(times int, line string) string {
	for range times {
		line = "sh -c '" + strings.ReplaceAll(line, "'", `'\''`) + "'"
	}
	return line
}

func TestReasonsAreForPeople(t *testing.T) {
	line := shell.Read("./x.sh; eval \"$y\"; $z; python3 a.py; bash < b; . c; PATH=d e", shell.Bash)
	if len(line.Reasons()) != 5 {
		t.Errorf("Hidden() = %q, want five", line.Reasons())
	}
	if got, want := line.Reasons()[0], "runs the file ./x.sh"; got != want {
		t.Errorf("Hidden()[0] = %q, want %q", got, want)
	}
	if got, want := shell.Read("'./a b\tc\x7fd'", shell.Bash).Reasons()[0], "runs the file ./a b c d"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	long := shell.Read("./"+strings.Repeat("é\x1b", 4000), shell.Bash).Reasons()
	for _, why := range long {
		if len([]rune(why)) > 120 || strings.ContainsRune(why, 0x1b) {
			t.Errorf("a reason repeats too much: %q", why)
		}
	}
}

// A command line of another shell is read in the language of this shell.
func TestAShellHasItsOwnDialect(t *testing.T) {
	const quoted = ` -c "echo \$'\\'; rm -rf x; #'"` // one string of bash, and two commands of a POSIX shell
	for name, tc := range map[string]struct {
		line  string
		outer shell.Dialect
		runs  bool
	}{
		"bash in a POSIX shell":            {"bash" + quoted, shell.POSIX, false},
		"bash in bash":                     {"bash" + quoted, shell.Bash, false},
		"a POSIX shell in bash":            {"sh" + quoted, shell.Bash, true},
		"a POSIX shell in a POSIX shell":   {"dash" + quoted, shell.POSIX, true},
		"bash in a POSIX shell in bash":    {"sh -c true; bash" + quoted, shell.Bash, false},
		"POSIX again after bash has ended": {"bash -c true; echo $'\\'; rm -rf x; #'", shell.POSIX, true},
	} {
		if line := shell.Read(tc.line, tc.outer); line.Runs("rm") != tc.runs || line.Opaque() {
			t.Errorf("%s: %s runs rm: %t, want %t; opaque: %q", name, tc.line, !tc.runs, tc.runs, line.Reasons())
		}
	}
}

func TestALongLineSaysHowLongItMayBe(t *testing.T) {
	if got := shell.Read(strings.Repeat("x", shell.MaxLine+1), shell.Bash).Reasons(); len(got) != 1 || got[0] != "the line is longer than 64 KiB" {
		t.Errorf("%q", got)
	}
}
