package local

import (
	"path/filepath"
	"slices"
)

// systemDirectories belong to the system, according to the Filesystem Hierarchy Standard. An agent that works there
// could change how the machine starts, or who can log in.
var systemDirectories = []string{
	"/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/usr",
	"/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", // most systems have them in /usr
	"/var/cache", "/var/db", "/var/lib", "/var/lock", "/var/log", "/var/mail", "/var/run", "/var/spool",
}

// usersDirectories are directories below system directories whose files belong to users: source code,
// as images of containers have it, and files in memory.
var usersDirectories = []string{"/dev/shm", "/usr/local/src", "/usr/src"}

// systemDirectory returns the system directory that contains a real path or is within it, or an empty text.
func systemDirectory(dir string) string {
	if slices.ContainsFunc(usersDirectories, func(of string) bool { return isInside(of, dir) }) {
		return ""
	}
	for _, system := range systemDirectories {
		target, err := filepath.EvalSymlinks(system)
		if err != nil {
			target = system // it does not exist here
		}
		if dir == target || isInside(target, dir) || isInside(dir, target) {
			return system
		}
	}
	return ""
}

// isServiceHome reports whether a path is in the home of a user that runs a service, such as
// /var/lib/jenkins, whose work is there.
func isServiceHome(home, path string) bool {
	return isInside("/var/lib", home) && isInside(home, path)
}

// isInside reports whether a real path is in a directory, and is not the directory itself.
func isInside(dir, path string) bool {
	in, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && in != "." && filepath.IsLocal(in)
}
