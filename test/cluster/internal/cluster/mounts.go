package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A mount is one line of the kernel's list.
type mount struct {
	point string
	fs    string // type of file system
}

func readMounts() ([]mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	return parseMounts(string(data)), nil
}

// parseMounts reads the fifth field and, after a lone dash, the type.
func parseMounts(info string) []mount {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var mounts []mount
	for line := range strings.Lines(info) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) > 4 && len(kind) > 0 {
			mounts = append(mounts, mount{point: unescape.Replace(fields[4]), fs: kind[0]})
		}
	}
	return mounts
}

// shareMounts makes the cluster's folder a shared mount, so that containers see mounts that are added and removed below
// it. The rest of the machine's mounts stay as they are.
func (h host) shareMounts() error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(mounts, func(m mount) bool { return m.point == h.Dir }) {
		return nil
	}
	if err := unix.Mount(h.Dir, h.Dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s on itself: %w", h.Dir, err)
	}
	if err := unix.Mount("", h.Dir, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("sharing mounts of %s: %w", h.Dir, err)
	}
	return nil
}

// unmount undoes every mount in the cluster's folder, last first, and fails if one remains, because removing the folder
// would then remove the files of that mount.
func (h host) unmount() error {
	for range 3 { // a mount may hide another
		mounts, err := readMounts()
		if err != nil {
			return err
		}
		left := 0
		for _, m := range slices.Backward(mounts) {
			if m.point == h.Dir || strings.HasPrefix(m.point, h.Dir+"/") {
				left++
				_ = unix.Unmount(m.point, unix.MNT_DETACH) // the next look tells
			}
		}
		if left == 0 {
			return nil
		}
	}
	return fmt.Errorf("mounts remain in %s", h.Dir)
}
