// Package composite is one driver made of several, each mounted at a path, as
// a filesystem is made of disks.
//
// Its root is above all mounts: a file that a model knows as
// "/workspace/a.go" is "workspace/a.go" here. A path belongs to the mount that
// shares the most segments with it: "/mem" has nothing to do with "/memories",
// and "/workspace/vendor" hides what "/workspace" has there. A directory that
// only leads to mounts can be listed; nothing is written to it.
// What is below no mount is an *backend.OutsideError, which says where there is
// something.
package composite
