// Package composite is one driver made of several, each mounted at a path, as a filesystem is made of disks.
//
// Its root is above all mounts: a file that a model knows as "/workspace/a.go" is "workspace/a.go" here. A path belongs
// to the mount that shares the most segments with it: "/mem" does not contain "/memories", and a mount at
// "/workspace/vendor" hides the directory vendor of "/workspace". A directory that only leads to mounts can be listed;
// nothing is written to it. A path below no mount is an *backend.OutsideError, which names the mounts.
package composite
