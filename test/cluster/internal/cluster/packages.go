package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

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
