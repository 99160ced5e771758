//go:build linux

package confine

import (
	"errors"

	"golang.org/x/sys/unix"
)

// abiDevices is the version of Landlock that restricts ioctl on devices.
const abiDevices = 5

// Rights to read and execute, those of them that a file has, and rights to make devices.
const (
	reads       = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	readsOfFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	devices     = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// harmless are the devices that programs expect. A terminal is not one of them: it is the
// user's own.
var harmless = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// rules returns the rules of a version of Landlock.
func (p Private) rules(abi int) rules {
	attr := handled(abi)
	attr.Handled_access_fs |= reads
	if abi >= abiDevices {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rules{attr: attr, allow: func(ruleset int) error {
		var unknown []error
		allow := func(paths []string, access, ofFile uint64) {
			for _, path := range paths {
				unknown = append(unknown, allowPath(ruleset, access, ofFile, path))
			}
		}
		allow(p.Writable, attr.Handled_access_fs&^devices, readsOfFile|ofFiles)
		allow(p.Readable, reads, readsOfFile)
		allow(harmless, attr.Handled_access_fs, readsOfFile|attr.Handled_access_fs&ofFiles)
		return errors.Join(unknown...) // no port: the server connects for commands
	}}
}
