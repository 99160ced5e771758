package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/proc"
)

// healthTimeout is how long a component may take to become healthy. On a machine that also builds, this can take ten
// times as long as on an idle one.
const healthTimeout = 90 * time.Second

// now is the wall clock: it determines the validity of certificates and the printed durations.
var now = time.Now //nolint:forbidigo // nothing here is decided by the time

// A phase is a part of Up that is worth a line.
type phase struct {
	name string
	do   func(context.Context) error
}

// Up starts the cluster, or what is missing of it, and prints its progress.
func (s Site) Up(ctx context.Context, out io.Writer) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	start := now()
	for _, p := range s.phases(out) {
		began := now()
		if err := p.do(ctx); err != nil {
			fmt.Fprintf(out, "%-24s failed after %.1fs\n", p.name, now().Sub(began).Seconds())
			return err
		}
		fmt.Fprintf(out, "%-24s %5.1fs  (%.1fs)\n", p.name, now().Sub(began).Seconds(), now().Sub(start).Seconds())
	}
	fmt.Fprintf(out, "\nexport KUBECONFIG=%s\nkubectl: %s\n", s.Kubeconfig(), s.Kubectl())
	return nil
}

func (s Site) phases(out io.Writer) []phase {
	c := s.components()
	say := func(text string) { fmt.Fprintln(out, text) }
	return []phase{
		{"packages", func(ctx context.Context) error { return installPackages(ctx, say) }},
		{"leftovers", s.clearLeftovers},
		{"files, network", s.lay},
		{"etcd, containerd", c.run(append(c.runtimes(), c.etcd())...)},
		{"pause image", s.loadPause},
		{"API server", c.run(c.apiServer(), c.gate())},
		{"controllers", c.run(c.controllers(), c.scheduler(), c.dns(), c.volumes(), c.policies())},
		{"nodes", c.runNodes},
		{"nodes ready", c.nodesReady},
	}
}

// clearLeftovers removes the rest of a cluster of which no process is alive.
func (s Site) clearLeftovers(ctx context.Context) error {
	if !s.folder().claimed() {
		return nil
	}
	for _, c := range s.components().all() {
		r, err := proc.Read(s.pidFile(c.name))
		if err != nil {
			return err
		}
		if r.Alive() {
			return nil
		}
	}
	return s.clear(ctx)
}

// lay prepares files, mounts, cgroups and networks, before the processes start.
func (s Site) lay(ctx context.Context) error {
	for _, step := range []func() error{s.folder().claim, s.host().shareMounts, s.folder().prepare, s.host().saveSysctls, s.host().makeCgroups} {
		if err := step(); err != nil {
			return err
		}
	}
	return s.createNetwork(ctx)
}

// run returns a step that starts the components that do not run, all at once, and waits until each is healthy.
func (c components) run(components ...component) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, one := range components {
			if err := c.start(ctx, one); err != nil {
				return err
			}
		}
		for _, one := range components {
			if err := c.await(ctx, one, one.healthy); err != nil {
				return err
			}
		}
		return nil
	}
}

// runNodes starts the kubelets one after the other, because a kubelet removes all files in the folder for the sockets
// of devices when it starts, and the folder cannot be configured.
func (c components) runNodes(ctx context.Context) error {
	for _, one := range c.kubelets() {
		if err := c.run(one)(ctx); err != nil {
			return err
		}
	}
	return c.run(c.proxies()...)(ctx)
}

func (c components) nodesReady(ctx context.Context) error {
	for i, one := range c.kubelets() {
		if err := c.await(ctx, one, c.nodeReady(c.nodes()[i])); err != nil {
			return err
		}
	}
	return nil
}

// start starts a component unless it runs with the same arguments. A component with other arguments, for example
// another port, is restarted.
func (c components) start(ctx context.Context, one component) error {
	args := one.args
	if one.inside != "" {
		// Not `ip netns exec`: that would mount /sys anew and hide the cgroups.
		args = append([]string{"nsenter", "--net=" + one.inside.Path(), "--"}, args...)
	}
	r, err := proc.Read(c.pidFile(one.name))
	if err != nil {
		return err
	}
	if r.Alive() && slices.Equal(r.Args, args) {
		return nil
	}
	if err := proc.KillAll(ctx, []proc.Identity{r.Identity}); err != nil {
		return err
	}
	return proc.Start(proc.Spec{Args: args, Dir: c.Dir, Log: c.log(one.name), PIDFile: c.pidFile(one.name)})
}

// await repeats a check until it succeeds, the component has ended, or healthTimeout is over.
func (c components) await(ctx context.Context, one component, healthy check) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	err := proc.Until(ctx, func() error {
		err := healthy(ctx)
		if r, _ := proc.Read(c.pidFile(one.name)); err != nil && !r.Alive() {
			err = errors.New("it has ended")
			cancel()
		}
		return err
	})
	if err != nil {
		return c.explain(one, err)
	}
	return nil
}

// explain adds the last lines of the component's log to an error.
func (c components) explain(one component, err error) error {
	data, _ := os.ReadFile(c.log(one.name)) // no log is an empty log
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	last := strings.Join(lines[max(0, len(lines)-20):], "\n")
	return fmt.Errorf("waiting for %s: %w\n%s\nThe whole log is %s", one.name, err, last, c.log(one.name))
}

// lock keeps two processes from building or clearing the same cluster at once.
func (s Site) lock() (unlock func(), err error) {
	f, err := os.OpenFile("/run/"+s.Name+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

const cniPlugins = "/usr/lib/cni"

// packages lists the needed Debian packages, each with a file of it by which an installed package is recognized.
var packages = []struct{ name, brings string }{
	{"containerd", "containerd"},
	{"runc", "runc"},
	{"containernetworking-plugins", filepath.Join(cniPlugins, "ptp")},
	{"nftables", "nft"},
	{"conntrack", "conntrack"},
	{"iproute2", "ip"},
	{"debootstrap", "debootstrap"},
}

// installPackages installs what is missing and says so.
func installPackages(ctx context.Context, say func(string)) error {
	var missing []string
	for _, p := range packages {
		if _, err := exec.LookPath(p.brings); err != nil {
			missing = append(missing, p.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	say("installing " + strings.Join(missing, " ") + " with apt-get")
	if apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, missing...)...) == nil {
		return nil
	}
	say("not found; reading the package lists first") // a fresh machine has none
	if err := apt(ctx, "update"); err != nil {
		return err
	}
	return apt(ctx, append([]string{"install", "-y", "--no-install-recommends"}, missing...)...)
}

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running apt-get %s: %w\n%s", args[0], err, out)
	}
	return nil
}
