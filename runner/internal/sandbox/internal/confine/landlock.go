//go:build linux

package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The versions of Landlock that introduced what is used.
const (
	abiRefer    = 2 // before, files cannot be moved between directories at all
	abiTruncate = 3
	abiNetwork  = 4
	abiScope    = 6
)

// Ports that commands may connect to and listen on. The ports of metadata services,
// and those that NetworkPolicies open for the runner, are lower.
const (
	firstPort = 1024
	lastPort  = 65535
)

// changes are the access rights to create, change and remove files and directories.
// Reading and executing are not restricted.
const changes = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
	unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
	unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
	unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER

// ofFiles are the rights of changes that are valid in a rule for a file.
const ofFiles = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

// rules are a ruleset and how to fill it.
type rules struct {
	attr  unix.LandlockRulesetAttr
	allow func(ruleset int) error
}

// protecting returns the rules that protect a directory.
func protecting(protect string, abi int) rules {
	attr := handled(abi)
	return rules{attr: attr, allow: func(ruleset int) error {
		if err := allowFiles(ruleset, attr.Handled_access_fs, protect); err != nil {
			return err
		}
		return allowPorts(ruleset, attr.Handled_access_net)
	}}
}

// restrict applies Landlock to this thread and returns its version.
func restrict(choose func(abi int) rules) (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("asking for Landlock: %w", errno)
	}
	abi := int(version)
	if abi < abiRefer {
		return abi, fmt.Errorf("using Landlock: version %d cannot move files", abi)
	}
	r := choose(abi)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&r.attr)), unsafe.Sizeof(r.attr), 0) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return abi, fmt.Errorf("making rules of Landlock: %w", errno)
	}
	defer unix.Close(int(fd)) //nolint:errcheck // the rules stay in force
	if err := r.allow(int(fd)); err != nil {
		return abi, err
	}
	if _, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return abi, fmt.Errorf("applying Landlock: %w", errno)
	}
	return abi, nil
}

// handled returns the rights to restrict with a version of Landlock.
func handled(abi int) unix.LandlockRulesetAttr {
	rules := unix.LandlockRulesetAttr{Handled_access_fs: changes}
	if abi >= abiTruncate {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= abiNetwork {
		rules.Handled_access_net = unix.LANDLOCK_ACCESS_NET_CONNECT_TCP | unix.LANDLOCK_ACCESS_NET_BIND_TCP
	}
	if abi >= abiScope {
		rules.Scoped = unix.LANDLOCK_SCOPE_SIGNAL // abstract sockets stay allowed: programs use them
	}
	return rules
}

// processes is where the kernel describes processes. Writing there is refused: a command
// that lowers its own oom_score_adj makes the kernel kill supervisors and other commands
// before it.
const processes = "/proc"

// allowFiles allows changes everywhere except below processes and one directory: for each
// of its ancestors, below all other entries.
func allowFiles(ruleset int, access uint64, protect string) error {
	at := "/"
	for step := range strings.SplitSeq(strings.Trim(filepath.Clean(protect), "/"), "/") {
		entries, err := os.ReadDir(at)
		if os.IsNotExist(err) {
			return nil // there is nothing to protect
		}
		if err != nil {
			return fmt.Errorf("protecting %s: %w", protect, err)
		}
		for _, e := range entries {
			if path := filepath.Join(at, e.Name()); e.Name() != step && path != processes {
				allowPath(ruleset, access, ofFiles, path)
			}
		}
		at = filepath.Join(at, step)
	}
	return nil
}

// allowPath allows an access below a path, of which a file has those of ofFile. It skips a
// path that cannot be opened.
func allowPath(ruleset int, access, ofFile uint64, path string) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd) //nolint:errcheck // opened for its name only
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)} //nolint:gosec // descriptors are small
	_, _, _ = unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // the kernel reads it; without the rule more is refused, not less
}

// A portRule is struct landlock_net_port_attr.
type portRule struct{ access, port uint64 }

const rulePort = 2 // LANDLOCK_RULE_NET_PORT

// allowPorts adds a rule for each port, because Landlock has no ranges. This takes
// some milliseconds.
func allowPorts(ruleset int, access uint64) error {
	if access == 0 {
		return nil
	}
	// A bind to port 0 gets an ephemeral port, which is allowed.
	rule := portRule{access: unix.LANDLOCK_ACCESS_NET_BIND_TCP}
	for next := uint64(firstPort); next <= lastPort+1; next++ {
		_, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), rulePort,
			uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // the kernel reads it
		if errno != 0 {
			return fmt.Errorf("allowing port %d: %w", rule.port, errno)
		}
		rule = portRule{access: access, port: next}
	}
	return nil
}
