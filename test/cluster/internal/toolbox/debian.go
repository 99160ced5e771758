package toolbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// packages are the packages in addition to the essential ones of Debian, which include bash and coreutils.
var packages = []string{"busybox-static", "ca-certificates", "curl", "git", "procps", "python3"}

// needless are paths that are removed, because no program in a container reads them.
var needless = []string{
	"usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man",
	"var/cache/apt", "var/cache/debconf", "var/lib/apt/lists", "var/log",
}

// The user of containers of these images, who has a home directory.
const (
	user  = "65532"
	home  = "/home/agent"
	entry = "agent:x:65532:65532::/home/agent:/bin/bash\n"
	group = "agent:x:65532:\n"
)

// debian returns the lowest layer, which has a Debian.
func debian(suite, mirror string, say func(string)) layer {
	return layer{
		name:   "debian",
		inputs: append([]string{"1", suite, entry}, append(packages, needless...)...),
		fill: func(ctx context.Context, root string) error {
			include := "--include=" + strings.Join(packages, ",")
			cmd := exec.CommandContext(ctx, "debootstrap", "--variant=minbase", include, suite, root, mirror)
			// What it mounts goes with it, even when it is killed.
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
			out := &progress{say: say}
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("running debootstrap of %s from %s: %w\n%s", suite, mirror, err, out.last())
			}
			return furnish(root)
		},
	}
}

// furnish removes the needless paths and adds the user. It uses an os.Root, because the tree has links that lead out of
// it.
func furnish(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the tree: %w", err)
	}
	defer root.Close()
	for _, name := range needless {
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("removing what is needless: %w", err)
		}
	}
	for _, dir := range []string{"var/log", "var/cache/apt/archives/partial", "var/lib/apt/lists/partial", home[1:]} {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making folders: %w", err)
		}
	}
	if err := root.Chown(home[1:], 65532, 65532); err != nil {
		return fmt.Errorf("giving the home to its user: %w", err)
	}
	return errors.Join(extend(root, "etc/passwd", entry), extend(root, "etc/group", group))
}

// extend adds a line to a file.
func extend(root *os.Root, file, line string) error {
	old, err := root.ReadFile(file)
	if err == nil {
		err = root.WriteFile(file, append(old, line...), 0o644)
	}
	if err != nil {
		return fmt.Errorf("adding the user: %w", err)
	}
	return nil
}

// release returns the release of Debian of this machine, so that programs of this machine run in images, too. If the
// machine has another system, it returns the stable release of 2023.
func release(osRelease string) string {
	values := map[string]string{}
	for line := range strings.Lines(osRelease) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[key] = strings.Trim(value, `"`)
	}
	if values["ID"] == "debian" && values["VERSION_CODENAME"] != "" {
		return values["VERSION_CODENAME"]
	}
	return "bookworm"
}

// A progress reads lines such as "I: Retrieving git 1:2". It prints the first line of each verb, and keeps the end of
// the output.
type progress struct {
	say     func(string)
	printed string
	kept    []byte
}

// Write implements io.Writer for the output of debootstrap.
func (p *progress) Write(data []byte) (int, error) {
	p.kept = append(p.kept, data...)
	p.kept = p.kept[max(0, len(p.kept)-4096):]
	for line := range bytes.Lines(data) {
		verb, _, _ := strings.Cut(strings.TrimPrefix(string(line), "I: "), " ")
		if bytes.HasPrefix(line, []byte("I: ")) && p.known(verb) {
			p.printed += verb + " "
			p.say("  " + strings.ToLower(verb))
		}
	}
	return len(data), nil
}

// known reports whether a verb is of a long phase that was not printed yet.
func (p *progress) known(verb string) bool {
	return strings.Contains("Retrieving Extracting Unpacking Configuring ", verb+" ") && !strings.Contains(p.printed, verb+" ")
}

func (p *progress) last() string { return string(p.kept) }
