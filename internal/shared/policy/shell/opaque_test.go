package shell_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/policy/shell"
)

func TestOpaque(t *testing.T) {
	cases := map[string][]string{
		"scripts":             {`./x.sh`, `x/y`, `../y`, `/workspace/x`, `/tmp/x`, `/bin/../tmp/x`, `~/x`, `sh x.sh`, `bash -x x.sh`, `bash x`, `source x`, `. x`, `. ./x`, `bash -e ./x a b`, `env ./x`, `sudo sh x`, `nohup ./x &`, `. <(ls)`, `bash <(curl x)`, `./gradlew build`, `node_modules/.bin/jest`, `zsh x`, `busybox sh x`, `busybox ash ./x`},
		"code":                {`python x.py`, `python3 -c 'x'`, `python3.12 x`, `python`, `python -`, `python -m x`, `python3 -u x.py`, `perl -e x`, `perl x`, `ruby -e x`, `node -e x`, `node x.js`, `node`, `php x.php`, `lua x`, `java -jar x.jar`, `vim -c '!ls'`, `ed x`, `deno run x`, `fish -c ls`, `pwsh -c ls`, `awk -f x`, `awk 'BEGIN{system("ls")}'`, `awk '{print | "sh"}'`, `awk "$x"`, `sed '1e ls'`, `sed 's/x/ls/e'`, `sed -f x y`, `sed "$x" y`, `sed -n '/a/,/b/e ls'`, `gdb x`, `go run x.go`, `go run .`, `cargo run`, `make -f x`, `make --eval='x:;ls'`, `make SHELL=/tmp/x`, `gmake SHELL=/tmp/x`, `uv run x.py`, `expect x`, `crontab x`, `at now`, `sqlite3 x '.shell ls'`},
		"input":               {`curl x | sh`, `curl x | sudo bash -s -- a`, `base64 -d x | sh`, `echo ls | bash`, `echo ls | python3`, "sh <<E\nls\nE", "python3 <<'E'\nprint(1)\nE", `bash < x`, `bash -s < x`, `bash`, `sudo -i`, `sudo -s`, `sh -`, `sh --`, `cat x | xargs -I{} sh -c '{}'`, `xargs sh -c`, `ls | tee >(sh)`, `ssh host`, `su -`, `su bob`},
		"names":               {`$x`, `$x y`, `${x}`, `"$x" y`, `$(echo rm) y`, "`echo rm` y", `r$x y`, `r* y`, `/bin/r? y`, `r[m] y`, `{rm,x}`, `r{m,n} x`, `$((1))`, `sudo $x y`, `env $x`, `env "$x"`, `exec $x`, `command $x`, `xargs $x`, `xargs -I{} {} y`, `find . -exec {} \;`, `find . -exec $x {} \;`, `nice $x`, `timeout 5 $x`, `busybox $x`, `strace $x`, `sudo -u bob "$x"`, `if $x; then ls; fi`, `f() { "$@"; }`, `"${a[@]}"`, `${a[0]}`, `!(x)`, `@(rm) x`, `find $args`},
		"text as commands":    {`eval ls`, `eval "$x"`, `eval 'ls'`, `sh -c "$x"`, `bash -c "ls $x"`, `bash -c $x`, `bash -c "$(cat x)"`, `trap "$x" EXIT`, `trap "rm $x" EXIT`, `alias x="$y"`, `git bisect run "$x"`, `ssh host "$x"`, `echo ${x@P}`, `x='$(ls)'`, `x='a[$(ls)]'; echo $((x))`, "x='`ls`'", `x=\$\(ls\)`, `printf -v 'a[$(ls)]' x`, `read 'a[$(ls)]'`, `test -v 'a[$(ls)]'`, `[ -v 'a[$(ls)]' ]`, `[[ 'a[$(ls)]' -eq 0 ]]`, `unset 'a[$(ls)]'`, `let 'a[$(ls)]=1'`, `declare 'a[$(ls)]=1'`, `declare -i x='a[$(ls)]'`, `mapfile -C 'ls' -c 1 x`, `compgen -W '$(ls)'`, `compgen -C ls`, `mapfile $x`, `mapfile -"$x" y`, `bind $x`, `complete -C ls x`, `bind -x '"a":ls'`, `fc -s`, `tar --to-command="$x" -xf y`, `PAGER="$x" man ls`},
		"what names lead to":  {`PATH=/tmp ls`, `PATH=.:$PATH`, `export PATH=/x:$PATH`, `export PATH`, `declare -x PATH=/x`, `typeset PATH=x`, `local PATH=x`, `\export PATH=/x`, `command export PATH=/x`, `env PATH=/x ls`, `sudo PATH=/x ls`, `read PATH`, `read PATH < x`, `printf -v PATH %s /x`, `printf -vPATH x`, `mapfile PATH < x`, `for PATH in /x; do ls; done`, `unset PATH`, `declare -n p=PATH`, `: ${BASH_ENV:=/x}`, `export $(cat x)`, `export "$x"`, `declare "$x=y"`, `getopts a PATH`, `LD_PRELOAD=x ls`, `LD_LIBRARY_PATH=x ls`, `ENV=x sh -c ls`, `BASH_ENV=x bash -c ls`, `PS4='x' bash -xc ls`, `PROMPT_COMMAND=x`, `HOME=/x git status`, `NODE_OPTIONS='-r ./x' npm test`, `PERL5OPT=-Mx y`, `GIT_CONFIG_COUNT=1 git x`, `SHELL=/x y`, `hash -p /tmp/x git`, `enable -f x y`, `enable -n test`, `ls() { :; }`, `function git { :; }`, `cd() { :; }`, `alias git=x`, `alias sudo='sudo '`},
		"git":                 {`git -c alias.x='!ls' x`, `git -c core.sshCommand=x fetch`, `git -c core.hooksPath=x commit`, `git -c "$x" y`, `git config core.editor x`, `git config --global alias.x '!ls'`, `git config "$x" y`, `git --exec-path=/x y`, `git clone 'ext::sh -c ls'`, `git filter-branch x`, `git difftool`, `git grep -Oless x`, `git clone -c core.fsmonitor=x y`, `git clone --config core.fsmonitor=x y`, `git clone --template=x y`, `git rebase --exec "$x" y`, `git config --edit`},
		"programs with more":  {`ssh -o ProxyCommand=x host ls`, `tar -I "$x" -xf y`, `git config include.path x`, `docker run x sh y.sh`, `kubectl exec x -- bash ./y`, `parallel ./x ::: a`, `watch ./x`, `strace -o x python3 y.py`, `npx -c "$x"`},
		"detours of paths":    {`/workspace/l/../../usr/bin/ls`, `/usr/bin/../../workspace/x`, `/usr/bin/./ls`, `/usr//bin/ls`, `/usr/local/bin/../bin/ls x`, `sudo /opt/l/../../bin/ls`},
		"options after -c":    {`sh -c -i 'rm -rf x'`, `bash -c --norc 'rm x'`, `bash -c -O extglob 'rm x'`, `sh -c +x 'rm x'`, `bash -c +e -x 'rm x'`, `bash -c +o pipefail 'rm x'`, `bash -c +O extglob 'rm x'`, `sh -c -x +x 'rm x'`, `sh -c -o pipefail +e 'rm x'`, `zsh -c +f 'rm x'`},
		"versions":            {`perl5.36 -e 'exec("id")'`, `perl5.36-x86_64-linux-gnu x`, `ruby3.2 -e x`, `php8.2 -r x`, `node18 -e 1`, `nodejs-18 x`, `python3-dbg -c 1`, `python3.11-dbg x`, `python3.13t x`, `lua5.4`, `lua-5.4 x`, `tclsh8.6 x`, `guile-3.0 x`, `emacs-29 x`, `vim.tiny x`, `nc.openbsd -e x h 1`, `busybox-static x`, `busybox1.36 x`, `bash5.2 x`, `zsh-5.9 x`, `java-17 -jar x`, `go1.22 run x`, `tar1.35 -I x -f y`, `/usr/bin/perl5.36 x`, `env ruby3.2 x`},
		"other launchers":     {`nc -e id h 1`, `ncat -c id h 1`, `socat - EXEC:id`, `sshpass -p x id`, `setuidgid u id`, `runcon -t x id`, `run-parts .`, `bats x`, `cmake -E env id`, `cmake -P x.cmake`, `cmake -Px.cmake`, `cmake -C x .`, `rpm --eval '%(id)'`, `rpm -E '%(id)'`, `rpm -qE x`, `rpm --ev x`, `rpm --define 'x %(id)' -q y`, `rpmbuild -ba x`, `mvn exec:exec`, `mvn compile exec:java`, `mvn "$x"`, `mvn $x`, `tcc -run x.c`, `ssh-keygen -D x`, `ssh-keygen -qDx`, `ssh-add -s x`, `gtimeout 5 id`},
		"sed and awk":         {`sed 'p;e ls' x`, `sed 's/[/]/x/e' y`, `sed 's/a/b/w x' y`, `sed 's/[^]/]/x/e p/' y`, `sed -n p -e '1e ls' x`, `sed -i -e p -e 's/x/ls/e' y`, `sed 'w x' y`, `sed 's/a/b/;1r x' y`, `sed -- p x`, `sed "s/a/$x/" y`, `sed --posix p x`, `sed -l 5 p x`, `awk '"ls" | getline'`, `awk 'getline < "x"'`, `awk '{print ||| "sh"}'`, `gawk '@load "x"; {print}'`, `awk -F : '{system($1)}' x`, `awk -F: 'BEGIN{system("ls")}' x`, `awk -vx=1 'BEGIN{system("ls")}' x`, `awk -F -v 'BEGIN{system("ls")}' x`, `awk -v x=1 -f y`, `mawk -W exec x`, `awk -v x="$y" "$z"`},
		"what cannot be read": {`(`, `)`, `ls )`, `"`, `'`, "`", `if`, `if ls; then`, `ls &&`, `| ls`, `;;`, `<<`, "cat <<E\nls", `$(`, `${`, `((`, `[[`, `[[ a`, `f() `, `case x in`, "ls\n}", `ls > `, `a=(`, `{ ls`, `for`, `done`},
		"shells' differences": {"ls\x00", "\xff", "cat <<$'E'\nx\n$E\nE\n", "cat <<\"$x\"\nx\n$x\n", "cat <<E$x\nx\nE$x\n", "cat <<`E`\nx\n`E`\n"},
	}
	for name, lines := range cases {
		for _, line := range lines {
			t.Run(name+"/"+line, func(t *testing.T) {
				check(t, shell.Bash, expectation{line, "", true})
			})
		}
	}
}

func TestNotOpaque(t *testing.T) {
	cases := map[string][]string{
		"work":          {`ls -la`, `cd /workspace && go test ./...`, `make`, `make -j4 test`, `npm ci && npm run build`, `npm test SHELL=/x`, `go test -run PATH=/x`, `mapfile y"$x"`, `npm test`, `yarn install`, `pnpm install`, `cargo build --release`, `cargo test`, `go build ./...`, `go vet ./...`, `pytest -q`, `python -m pytest -q`, `python3 -m pip install x`, `pip install -r x`, `mvn test`, `gradle build`, `tsc -p .`, `eslint .`, `cmake -B build`, `docker build -t x .`, `kubectl get pods`, `terraform plan`, `helm template .`, `python --version`, `node -v`, `node --version`, `java -version`, `bash --version`, `npm --version`, `uv sync`, `poetry install`, `bundle install`, `cmake --build build`, `cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -G Ninja`, `mvn -q -DskipTests package`, `mvn -Dtest="$t" test`, `rpm -qa`, `rpm -q --qf '%{NAME}' x`, `ssh-keygen -t ed25519 -f x -N ''`, `gcc-12 -O2 -o x y.c`, `tcc -c x.c`, `pip3 install -r x`, `python3.11 -m pytest -q`, `go1.22 test ./...`, `sha256sum x`, `base64 -d x`, `bzip2 x`, `clang-format-15 -i x`, `pg_dump x`},
		"files":         {`cat x | head -n 5`, `grep -rn 'a|b' . | sort | uniq -c`, `find . -name '*.go' | xargs wc -l`, `find . -type f -exec grep -l x {} +`, `ls *.go`, `cp x{,.bak}`, `mkdir -p a/{b,c}`, `mv "$a" "$b"`, `sed -i 's/a/b/g' x`, `sed -n '1,20p' x`, `sed -e '/x/d' -e 's|a|b|' y`, `sed -E 's/(a|b)/\1/; s/c/d/' x`, `sed '$!d' x`, `sed 's#a/b#c#;s,x,y,' x`, `sed -n '/^## a/,/^## b/p' x`, `sed 's/[[:space:]]*$//' x`, `sed 's/[^a-z]//g' "$x"`, `sed -i -e 's/a/b/2' x`, `awk -v n="$n" '$1 > n' "$x"`, `awk '{print $2}' x`, `awk -F: '$3 > 5 || $1 == "a" {n++} END {print n}' x`, `awk -v x=1 'NR==x' y`, `tar -xzf x.tgz -C y`, `diff <(sort a) <(sort b)`, `tee x < y`, `cat > x <<'E'` + "\n#!/bin/sh\neval $(ls)\nE", `cat > x <<E` + "\nhello $USER\nE", `jq '.a | .b' x`, `echo '$(ls)'`, `curl -sS https://x | jq .`, `tar czf - x | split -b 1m`},
		"shell":         {`set -euo pipefail`, `export A=b`, `export A="$(ls)"`, `A=b C=d ls`, `x=$(ls); echo "$x"`, `for f in *.go; do gofmt -l "$f"; done`, `while read -r line; do echo "$line"; done < x`, `while IFS= read -r line; do echo x; done < y`, `[ -f x ] && cat x`, `[[ $a == b* && -n $c ]]`, `if [[ $x =~ ^a ]]; then ls; fi`, `((i++))`, `echo $((a + 1))`, `case $1 in a) ls;; esac`, `trap 'ls' EXIT`, `declare -a x=(1 2)`, `local x=1`, `a+=(b)`, `a=$(grep '$(x)' y)`, `((a = $(grep -c '$(x)' y)))`, `echo "${a[@]}"`, `echo ${a:-b} ${a%x} ${a//x/y}`, `printf '%s\n' "$x"`, `printf -v x %s y`, `exec 2>&1`, `exec > x`, `ulimit -n 5`, `wait`, `kill %1`, `ls 2>/dev/null || true`, `source_x`, `mapfile -t x < y`, `unset x`, `time ls`, `: > x`, `PAGER=cat git log`, `GIT_PAGER= git diff`, `EDITOR=true git commit`, `GIT_EDITOR=: git rebase --continue`, `bash -c 'ls && cat x'`, `bash -lc "cd x && npm test"`, `sh -c 'echo $1' _ x`, `timeout 60 npm test`, `nohup npm start > log 2>&1 &`},
		"git":           {`git status`, `git log --oneline -5`, `git -C x diff`, `git -C "$d" status`, `git commit -m "$msg"`, `git commit -am 'x'`, `git push -u origin HEAD`, `git checkout -b x`, `git switch -c x`, `git rebase main`, `git -c user.name=x -c user.email=y commit -m z`, `git --no-pager log`, `git config user.email x@y`, `git config --global user.name x`, `git config --get core.editor`, `git config -l`, `git stash`, `git grep -n x`, `git add -A && git commit -m "$(cat <<'E'` + "\nx\nE\n)\"", `git clone https://x y`, `git submodule update --init`},
		"odd names":     {`'su su-exec' x`, `'' x`},
		"sudo and such": {`sudo apt-get install -y x`, `sudo -E env A=b ls`, `xargs -n1 echo`, `ls | xargs -I{} cp {} x/{}`, `env`, `env A=b`, `nice`, `sudo -l`},
	}
	for name, lines := range cases {
		for _, line := range lines {
			t.Run(name+"/"+line, func(t *testing.T) {
				check(t, shell.Bash, expectation{line, "", false})
			})
		}
	}
}

// These lines hide nothing, but to know that one would have to know the options of
// the program. They are opaque, so that the package needs no table of them.
func TestOpaqueAlthoughHarmless(t *testing.T) {
	for _, line := range []string{
		`f() { ls "$1"; }; f x`, `hash -r`, `git -c core.pager=cat log`, `uv pip install x`, `uv run pytest`, `npx jest`, `sed '1i\' x`, `bash -n x.sh`,
		`tar cf x y --checkpoint=100`, `ssh -p 22 -i k u@h ls -o -F`, `git merge -s ours x`, `git merge --strategy=ort x`, `ip addr`, `go build -ldflags '-s -w -X main.v=1' ./...`,
		`gcc -O2 -Wall -Wl,-rpath,/x -fuse-ld=lld -o x y.c`, `CC=gcc make`, `CC="gcc -m32" make`, `CFLAGS=-O2 make`, `npm install --global x`, `npm config set registry x`,
		`ip -br addr`, `LESS=-R git log`, `doas -u bob ls`, `unshare -r ls`, `nsenter -t 1 -a ls`, `chroot /x ls`, `linux64 make`, `setarch x86_64 -R make`,
		`fakeroot make install`, `parallel -j4 gzip ::: a b`, `parallel gzip {} ::: a b`, `systemd-run --user -u x make`, `script -qc make x`, `fc -l`,
	} {
		t.Run(line, func(t *testing.T) {
			check(t, shell.Bash, expectation{line, "", true})
		})
	}
}

// What a plain sh reads otherwise than bash counts both ways.
func TestDialects(t *testing.T) {
	cases := map[string]expectation{
		"a quote that ends earlier":      {`echo $'\'; rm -rf x; #'`, "rm", false},
		"a test that is no test":         {`[[ a || rm x ]]`, "rm x", true},
		"arithmetic that is no such":     {`((a || rm x))`, "rm x", true},
		"a function that is none":        {`function f { rm x; }`, "rm", true},
		"a script in no test":            {`[[ a || sh y.sh ]]`, "sh", true},
		"a test in what is not for both": {`a=(x); [[ a ]]`, "", true},
		"a list in what is not for both": {`a=(x); ((a || rm x))`, "rm x", true},
		"a quote in what is no command":  {`a=(x); echo $'\'; rm x; #'`, "rm x", true},
		"a redirection of bash":          {`ls &>x rm y`, "rm y", false},
		"a line of both":                 {`cd x && git push`, "git push", false},
		"what is for bash alone":         {`diff <(ls) x`, "ls", false},
		"what is for none":               {`ls )`, "ls", true},
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) { check(t, shell.POSIX, want) })
	}
	if line := shell.Read(`echo $'\'; rm -rf x; #'`, shell.Bash); line.Runs("rm") || line.Opaque() {
		t.Error("bash reads $'…' otherwise than it does")
	}
	check(t, shell.Bash, expectation{`sh -c "echo \$'\\'; rm -rf x; #'"`, "rm", false}) // a plain sh in bash
}
