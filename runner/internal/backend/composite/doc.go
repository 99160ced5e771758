// Package composite is one backend made of several, each mounted at a path, as
// a filesystem is made of disks.
//
// Its root is above all mounts: a file that a model knows as
// "/workspace/a.go" is "workspace/a.go" here. A path belongs to the mount that
// shares the most segments with it: "/mem" has nothing to do with "/memories",
// and "/workspace/vendor" hides what "/workspace" has there. A directory that
// only leads to mounts can be listed and searched; nothing is written to it.
// What is below no mount is an *backend.OutsideError, which says where there is
// something.
//
// Searches go to every mount below the place where they start, at the same
// time, and come back as one answer in the order of backend.Compare. The
// failure of one is the failure of the whole: half an answer looks like the
// truth.
package composite
