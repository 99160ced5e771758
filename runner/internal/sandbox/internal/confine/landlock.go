//go:build linux

package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The versions of Landlock that introduced the features in use.
const (
	abiRefer    = 2 // before, files cannot be moved between directories at all
	abiTruncate = 3
	abiNetwork  = 4
	abiScope    = 6
)

// Ports that commands may connect to and listen on. The ports of metadata services, and the ports that NetworkPolicies
// open for the runner, are lower.
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

// limit is the highest version of Landlock to use; empty: the kernel's. Only the linker sets it, for tests: no flag and
// no environment variable of an image can weaken the confinement.
var limit string

// A kernel makes the system calls of Landlock.
type kernel struct {
	version  func() (int, error)
	create   func(unix.LandlockRulesetAttr) (ruleset int, err error)
	restrict func(ruleset int) error
	close    func(ruleset int) error
}

// running is the kernel of this machine.
var running = kernel{version: version, create: createRuleset, restrict: restrictSelf, close: unix.Close}

func version() (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("asking for Landlock: %w", errno)
	}
	abi := int(version)
	if most, err := strconv.Atoi(limit); err == nil {
		abi = min(abi, most)
	}
	if abi == 0 {
		return 0, fmt.Errorf("asking for Landlock: %w", unix.EOPNOTSUPP)
	}
	return abi, nil
}

func createRuleset(attr unix.LandlockRulesetAttr) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return 0, fmt.Errorf("making rules of Landlock: %w", errno)
	}
	return int(fd), nil
}

func restrictSelf(ruleset int) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("applying Landlock: %w", errno)
	}
	return nil
}

// confine applies Landlock to this thread and returns the version whose rights are restricted. A kernel may report a
// newer version than it fully supports and refuse its rights: then the next lower versions are tried, and lowered has
// the reason.
func (k kernel) confine(choose func(abi int) rules) (abi int, lowered, err error) {
	reported, err := k.version()
	if err != nil {
		return 0, nil, err
	}
	var tried unix.LandlockRulesetAttr
	for abi := reported; abi >= abiRefer; abi-- {
		r := choose(abi)
		if r.attr == tried {
			continue // this version has no other rights
		}
		tried = r.attr
		err := k.apply(r)
		if err == nil || !isUnsupported(err) {
			return abi, lowered, err
		}
		lowered = fmt.Errorf("the kernel reports version %d of Landlock and does not take the rights of version %d: %w", reported, abi, err)
	}
	if lowered == nil {
		return reported, nil, fmt.Errorf("using Landlock: version %d cannot move files", reported)
	}
	return reported, nil, lowered
}

// apply restricts this thread by rules.
func (k kernel) apply(r rules) error {
	ruleset, err := k.create(r.attr)
	if err != nil {
		return err
	}
	defer k.close(ruleset) //nolint:errcheck // the rules stay in force
	if err := r.allow(ruleset); err != nil {
		return err
	}
	return k.restrict(ruleset)
}

// isUnsupported reports whether the kernel does not support the request.
func isUnsupported(err error) bool {
	return slices.ContainsFunc([]error{unix.EINVAL, unix.EOPNOTSUPP, unix.ENOSYS, unix.E2BIG, unix.EAFNOSUPPORT},
		func(unknown error) bool { return errors.Is(err, unknown) })
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
		if err := allowEntries(ruleset, access, at, step, entries); err != nil {
			return err
		}
		at = filepath.Join(at, step)
	}
	return nil
}

// allowEntries allows changes below the entries of a directory, except one of them and processes.
func allowEntries(ruleset int, access uint64, dir, except string, entries []os.DirEntry) error {
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.Name() == except || path == processes {
			continue
		}
		if err := allowPath(ruleset, access, ofFiles, path); err != nil {
			return err
		}
	}
	return nil
}

// allowPath allows an access below a path; for a file, only the rights in ofFile. It skips a path that cannot be opened
// or has no rules: then more is refused, not less. It fails if the kernel does not know the access.
func allowPath(ruleset int, access, ofFile uint64, path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd) //nolint:errcheck // opened for its name only
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return nil
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)} //nolint:gosec // descriptors are small
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // the kernel reads it
	if isUnsupported(errno) {
		return fmt.Errorf("allowing %s: %w", path, errno)
	}
	return nil
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
