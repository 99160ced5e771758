package shell_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/policy/shell"
)

// An option that makes a program launch another: what it launches is seen, or the
// line is opaque, however the option is spelled.
func TestOptionsThatLaunchPrograms(t *testing.T) {
	cases := map[string][]string{
		"tar": {
			`tar -I rm -xf y`, `tar -Irm -xf y`, `tar -xIrm -f y`, `tar -xvI rm -f y`, `tar xIf rm y`, `tar cfI y rm x`, `tar --use-compress-program=rm -xf y`, `tar --use-comp rm -xf y`, `tar --to-comm=rm -xf y`,
			`tar --to-command rm -xf y`, `tar cf x y --checkpoint=1 --checkpoint-act=exec=rm`, `tar cf x y --checkpoint-action='exec=rm x'`, `tar -F rm -cf x y`, `tar --info-sc=rm -cf x y`, `tar --new-vol=rm -cf x y`, `tar --rsh-c=rm -xf h:x`, `tar --rmt-c=rm -xf h:x`, `gtar -I rm -xf y`, `bsdtar --use-comp=rm -xf y`,
		},
		"rsync":       {`rsync -e rm a b:c`, `rsync -erm a b:c`, `rsync -ave rm a b:c`, `rsync -averm a b:c`, `rsync --rsh=rm a b:c`, `rsync --rs=rm a b:c`, `rsync --rsync-p=rm a b:c`, `rsync --rsync-path rm a b:c`},
		"sort":        {`sort --compress-program=rm x`, `sort --compress-prog rm x`, `sort --comp=rm x`},
		"split":       {`split --filter=rm x`, `split --filt=rm x`, `split --fi 'rm x' y`},
		"find":        {`find . -exec rm {} +`, `find . -execdir rm {} +`, `find . -ok rm {} \;`, `find . -okdir rm {} \;`},
		"xargs":       {`xargs -I{} rm {}`, `xargs -i rm {}`, `xargs --repl=% rm %`, `xargs --max-a 1 rm`, `xargs -P4 -n1 rm`, `xargs --process-sl=x rm`},
		"env":         {`env -S 'rm x'`, `env -iS 'rm x'`, `env --split-string='rm x'`, `env --split='rm x'`, `env --sp 'rm x'`, `env --chd=/x rm y`},
		"su":          {`su -c 'rm x'`, `su -lc 'rm x'`, `su -lcrm`, `su --comm='rm x'`, `su --session-comm 'rm x'`, `runuser -c rm`, `runuser -u x -- rm y`},
		"script":      {`script -c 'rm x'`, `script -qc 'rm x' y`, `script -qcrm y`, `script --comm=rm y`},
		"flock":       {`flock l rm x`, `flock -c 'rm x' l`, `flock l -nc 'rm x'`, `flock --comm='rm x' l`, `flock -xcrm l`},
		"others":      {`watch rm`, `watch -n1 'rm x'`, `strace -fo x rm y`, `nsenter -t 1 -m rm x`, `setpriv --reuid 1 rm x`, `unshare -r rm x`, `systemd-run --user rm x`, `parallel -j2 rm ::: x`, `timeout --kill=1 5 rm x`, `nice --adj=5 rm x`, `ip netns exec x rm y`, `busybox rm x`, `gosu x rm y`, `chpst -u x rm y`, `stdbuf --out=L rm x`, `sudo --us=x rm y`, `ionice --cl=3 rm x`, `nix-shell --ru 'rm x'`},
		"git":         {`git clone -u rm x`, `git clone -qurm x`, `git clone --upload-pack=rm x`, `git clone --upl rm x`, `git fetch --upload-p=rm x`, `git push --receive-pack=rm x`, `git push --exec=rm x`, `git archive --remote=x --ex=rm y`, `git rebase -x rm main`, `git rebase -ix rm main`, `git rebase --ex 'rm x' main`, `git bisect run rm`, `git submodule foreach 'rm x'`, `git ls-remote --exec=rm x`, `git -c core.pager=rm log`},
		"man":         {`man -P rm ls`, `man -aPrm ls`, `man --pag=rm ls`, `man -Hrm ls`, `man --html=rm ls`},
		"wget":        {`wget --use-askpass=rm x`, `wget --use-ask=rm x`},
		"cpio":        {`cpio --rsh-command=rm -F h:x`, `cpio --rsh-c rm -F h:x`},
		"scp":         {`scp -S rm a b:c`, `scp -rS rm a b:c`, `scp -rSrm a b:c`, `sftp -S rm h`},
		"tcpdump":     {`tcpdump -z rm -w x`, `tcpdump -nz rm -w x`, `tcpdump -zrm -G1 -w x`},
		"dpkg":        {`dpkg --pre-invoke=rm -i x.deb`, `dpkg --post-inv=rm -i x.deb`},
		"zip":         {`zip -T -TT rm x y`, `zip -rTT rm x y`, `zip --unzip-comm=rm x y`},
		"go":          {`go test -exec rm ./...`, `go build -toolexec=rm ./...`, `go vet --vettool=rm ./...`},
		"builtins":    {`jobs -rx rm x`, `jobs -x -- rm x`, `jobs -x -r rm x`, `exec -cla x rm y`, `exec -lax rm y`, `command -p -- rm x`, `builtin -- command rm x`, `trap -- 'rm x' EXIT`},
		"shells":      {`sg x -c rm`, `sg x rm`, `sg x -c 'rm y'`, `parallel 'rm {}' ::: x`, `parallel rm`, `chroot --userspec=x /y rm z`, `linux64 -R rm x`, `setarch x86_64 -R rm x`, `systemd-run -S rm x`, `script -qc 'rm x' /dev/null`, `fakeroot -- rm x`, `nsenter -t 1 -a rm x`},
		"abbreviated": {`ip netns exe ns rm`, `ip netns e ns rm`, `ip vrf exe v rm`, `ip net e ns rm`, `npm docs --browser=rm`, `npm docs --brow=rm`, `npm install --git=rm x`, `npm exe rm`, `npm explore x -- rm`, `npm explor x -- rm`},
		"variables":   {`RSYNC_CONNECT_PROG=rm rsync a b`, `RSYNC_RSH=rm rsync a b`, `GH_BROWSER=rm gh browse`, `BROWSER=rm x`, `EDITOR=rm git commit`, `PAGER=rm man x`, `CC=rm go build`, `CC=rm make`, `make CC=rm`, `CXX='rm x' make`, `LD=rm make`, `go env -w CC=rm`, `export CC=rm`, `FZF_DEFAULT_COMMAND=rm fzf`},
		"more":        {`bat --pager=rm x`, `rg --pre=rm x`, `rg --pre rm x`, `fzf --preview='rm x'`, `install -s --strip-program=rm x y`, `ag --pag=rm x`, `npm --script-sh=rm test`, `mosh --ssh=rm h`},
	}
	for name, lines := range cases {
		for _, line := range lines {
			t.Run(name+"/"+line, func(t *testing.T) {
				if read := shell.Read(line, shell.Bash); !read.Runs("rm") {
					t.Errorf("%q does not run rm; opaque: %q", line, read.Reasons())
				}
			})
		}
	}
}

// An option that makes a program run, load or read what the line does not show.
func TestOptionsThatHide(t *testing.T) {
	cases := map[string][]string{
		"ssh":     {`ssh -o ProxyCommand=x host ls`, `ssh -oProxyCommand=x host ls`, `ssh -4o LocalCommand=x host ls`, `ssh -NoProxyCommand=x host`, `ssh host -o ProxyCommand=x ls`, `ssh -F x host ls`, `ssh -vFx host ls`, `ssh -I lib.so host ls`, `ssh -p 22 -o x=y host ls`},
		"scp":     {`scp -o ProxyCommand=x a b:c`, `scp -roProxyCommand=x a b:c`, `scp -F x a b:c`, `sftp -b x host`, `sftp -oProxyCommand=x host`, `scp -D x a b`},
		"make":    {`make -f x`, `make -fx`, `make -sf x`, `make -kf x`, `make --file=x`, `make --fil x`, `make --makef=x`, `make --ev='x:;ls'`, `make -E 'x:;ls'`, `make -C x -f y`, `gmake -sf x`, `ninja -f x`, `ninja -vf x`},
		"git":     {`git grep -O x`, `git grep -nO x`, `git grep -Oless x`, `git grep --open x`, `git clone -ccore.fsmonitor=x y`, `git clone --conf core.fsmonitor=x y`, `git clone --conf=core.fsmonitor=x y`, `git archive --remote=ext::x y`, `git fetch ext::x`, `git difftool -x ls`, `git filter-branch --tree-filter ls`, `git upload-pack x`, `git merge -s mine x`, `git merge --strateg=mine x`, `git merge-index x -a`, `git -c alias.x='!ls' x`, `git -c core.sshCommand=x fetch`, `git --config-env=core.editor=X x`, `git for-each-repo --config=x y`},
		"curl":    {`curl -K x`, `curl -sK x y`, `curl -Kx`, `curl --config x`, `curl --conf x`, `curl --engine x y`},
		"wget":    {`wget -e use_askpass=x y`, `wget -qe x y`, `wget --exec=x y`, `wget --config=x y`},
		"apt":     {`apt-get -o DPkg::Pre-Invoke::=x install y`, `apt-get -yo x=y install z`, `apt -oX=y update`, `apt-get --opt x=y update`, `apt -c x update`, `apt --config-f=x update`},
		"pagers":  {`less '+!ls' x`, `less -kx y`, `more '+!ls' x`, `less --lesskey-src=x y`},
		"editors": {`vim -c '!ls'`, `vi x`, `ed x`, `emacs --eval x`, `nano x`},
		"others":  {`openssl engine x`, `openssl req -engine x`, `openssl dgst -provider x y`, `gcc -wrapper x,y z.c`, `gcc -fplugin=x z.c`, `cc --specs=x y.c`, `ctags --options=x`, `cargo --config x=y build`, `gdb -ex 'shell ls'`, `sqlite3 x '.shell ls'`, `psql -c '\! ls'`, `mysql -e 'system ls'`, `php -r x`, `lua -e x`, `ruby -e x`, `node -e x`, `perl -e x`, `sed --expr='1e ls' x`, `sed -ne '1e ls' x`, `sed -nf x y`, `awk --file=x`, `gawk -e 'BEGIN{system("x")}'`, `man -C x ls`, `man --config-f=x ls`, `rsync --daemon --config=x`, `rsync -M--rsync-path=x a b:c`, `rsync --remote-op=x a b`, `zip -T -TT 'x y' z`, `fzf --listen=1`},
		"compilers": {
			`gcc -B/tmp/x y.c`, `gcc -B /tmp/x y.c`, `gcc @args`, `clang -fuse-ld=evil x.c`, `gcc -fuse-ld=/tmp/x y.c`, `gcc -Wl,-plugin,x.so y.c`, `gcc -Wl,-O1,--plugin=x.so y.c`, `clang --ld-path=evil x.c`, `clang --config x.cfg y.c`, `clang --config=x.cfg y.c`, `gcc-13 -B/x y.c`,
			`x86_64-linux-gnu-gcc -B/x y.c`, `clang-18 -fplugin=x y.c`, `gcc -Xlinker -plugin -Xlinker x.so y.c`, `ld -plugin x.so y.o`, `CFLAGS=-fplugin=x make`, `LDFLAGS="-B/x" make`, `go build -ldflags=-extld=evil`, `go build -ldflags '-s -extld evil'`, `go build -ldflags="$x"`,
			`go env -w GOFLAGS=-toolexec=evil`, `go env -w "$x=y"`, `CC=./evil go build`, `gcc $x y.c`,
		},
		"git commands": {`git difft x`, `git y`, `git --git-dir=x status`, `git --git-dir x status`, `GIT_DIR=/x git status`, `XDG_CONFIG_HOME=x git status`, `git init --templ=/tmp/x`, `git init --templ /tmp/x`, `git clone --templ /tmp/x y`, `git $x`, `git "$x" y`},
		"abbreviated":  {`ip -b x`, `ip -batch x`, `ip -force -ba x`, `npm config set script-shell=x`, `npm set editor x`, `npm config edit`, `npm --node-opt='-r x' test`, `npm --userc=x install`},
		"environment": {
			`ZIPOPT='-T -TT x' zip y z`, `MANOPT=-Px man ls`, `RIPGREP_CONFIG_PATH=x rg y`, `WGETRC=x wget y`, `CURL_HOME=x curl y`, `MAKEFLAGS=-fx make`, `GOFLAGS=-toolexec=x go build`, `NODE_OPTIONS='-r x' npm test`, `PYTHONSTARTUP=x y`, `PERL5OPT=-Mx y`, `RUBYOPT=-rx y`,
			`JAVA_TOOL_OPTIONS=-javaagent:x mvn test`, `HOME=/x git status`, `XDG_DATA_HOME=/x y`, `LESS='+!x' git log`, `npm_Config_shell=x npm test`, `KUBECONFIG=x kubectl get pods`, `DOCKER_CONFIG=x docker ps`, `MAVEN_OPTS=-javaagent:x mvn test`, `export GIT_DIR=x`,
		},
		"builtins": {
			`mapfile -tC evil -c1 x <<< x`, `mapfile -tCevil -c1 x <<< x`, `mapfile -c1 -tC evil<<<x`, `readarray -tC evil -c1 x <<< x`, `mapfile -t$x y`, `mapfile -d '' -tCevil x`, `read -raPATH <<< x`, `read -ra PATH <<< x`,
			`read -aPATH <<< x`, `wait -npPATH`, `wait -fp PATH`, `read -r 'a[$(x)]'`, `read '-raa[$(x)]'`, `fc`, `fc -r`, `fc -ln`, `jobs -x "$x"`, `jobs $x evil`, `hash -p/x git`, `hash -lp /x git`, `enable -nf /x y`, `complete -oF x y`, `complete -aC x y`,
			`compgen -aC x`, `compgen -aW '$(x)'`, `bind -qx '"a":x'`, `bind -fx`, `printf -vPATH x`, `declare -gn x=PATH`, `test ! -v 'a[$(x)]'`,
		},
		"shells": {
			`sudo -u root -s <<< evil`, `sudo -n -s <<< evil`, `sudo -nu root -i <<< evil`, `sudo -ns`, `sudo --shell`, `sudo -u root --login`, `sudo --she <<< x`, `sudo -s A=b`, `sudo -n"$x" <<< y`, `sudo -e x`, `sudoedit x`, `doas -u root -s <<< evil`, `doas -nsu root`,
			`chroot /x <<< evil`, `chroot --userspec=x /y`, `unshare <<< evil`, `unshare -r`, `unshare --map-root-user --fork`, `unshare -S 0`, `unshare --new-option x`, `nsenter -t 1 -a <<< evil`, `nsenter --target 1 --all`, `nsenter -r/x`, `script`, `script -q /dev/null`, `script x <<< evil`, `linux64 <<< x`, `linux64 -R`, `linux32`,
			`setarch x86_64`, `setarch x86_64 -R`, `setarch -R x86_64`, `fakeroot <<< x`, `fakeroot -u`, `fakechroot`, `nix-shell`, `nix-shell -p x`, `nix develop`, `systemd-run -S`, `systemd-run --shell`, `systemd-run -tS`, `systemd-run --user -qS`, `systemd-run --she`, `newgrp x <<< evil`, `newgrp`, `sg x <<< evil`, `sg - x <<< evil`,
			`parallel <<< evil`, `echo evil | parallel`, `parallel -j4 <<< evil`, `parallel :::: x`, `parallel {} ::: x`, `parallel 'ls; {}'`, `parallel sh -c {}`, `parallel -a x`, `npx <<< x`, `pkexec <<< x`, `firejail`, `capsh -- <<< x`, `capsh --print -- -c ls`, `poetry shell`, `machinectl shell x`, `su -w -c <<< x`, `su bob <<< x`, `env chroot /x`, `exec unshare`,
		},
		"aliases": {"alias x='ls\ncd y'", "alias x=$'ls\\ncd'", "shopt -s expand_aliases\nalias k='gg '\nk push", "set -o posix", "bash -c 'alias x=ls\nx'", `sh -c "alias x=git"`, `BASH_ALIASES[x]=ls`, `set -k`, `set $x`, `shopt -s "$x"`, `POSIXLY_CORRECT=1 x`},
	}
	for name, lines := range cases {
		for _, line := range lines {
			t.Run(name+"/"+line, func(t *testing.T) {
				if !shell.Read(line, shell.Bash).Opaque() {
					t.Errorf("%q is not opaque", line)
				}
			})
		}
	}
}

// Options that look like those and launch nothing.
func TestOptionsThatLaunchNothing(t *testing.T) {
	for _, line := range []string{
		`tar -xzf x.tgz -C y`, `tar xzf x.tgz`, `tar czf x.tgz --exclude=y .`, `tar -tvf x`, `rsync -av --delete a/ b/`, `rsync -avz --exclude x a b`, `sort -k2 -t: -u x`, `sort --reverse x`, `split -b 1m x y`,
		`curl -sSfL -o x https://y`, `curl --compressed --connect-timeout 5 x`, `curl -fsSLO x`, `wget -qO- x`, `wget -q --show-progress x`, `scp -r a b:c`, `scp -P 22 -i k a b:c`, `make -j4 -C x test`, `make -k -s`, `make --no-print-directory test`,
		`apt-get install -y --no-install-recommends x`, `apt-get -qq update`, `git clean -fdx`, `git cherry-pick -x abc`, `git clone -q --depth 1 -b x https://y`, `git push -u origin main`, `git grep -nE x`, `git log --exclude=x --oneline`, `git commit -m 'shell hook'`, `git checkout hook`,
		`less x`, `less -R x`, `man ls`, `gcc -Wall -o x y.c`, `cargo test --color never`, `zip -r x y`, `rg --pretty x`, `rg -n x`, `openssl rand -hex 8`, `openssl x509 -in x -noout`, `sed -n -e 1p x`, `set -euo pipefail`, `set -x`, `set -- "$@"`, `shopt -s globstar nullglob`, `go test -run x ./...`, `npm run build`,
		`go generate ./...`, `git init -q`, `git --version`, `git -h`, `git rev-parse --git-dir`, `git ls-files`, `git worktree list`,
		`sudo -n ls`, `sudo -u bob ls -i -s`, `sudo -v`, `mapfile -t x < y`, `mapfile -d '' -t x < y`, `mapfile -n 5 x`, `readarray -t x <<< y`, `read -ra x <<< y`, `read -r -d '' x`, `wait -n`, `jobs -l`, `jobs`, `test -v x`,
	} {
		t.Run(line, func(t *testing.T) {
			if read := shell.Read(line, shell.Bash); read.Opaque() {
				t.Errorf("%q is opaque: %q", line, read.Reasons())
			}
		})
	}
}
