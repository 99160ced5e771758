// Package cgroup reads how much memory this container may use and uses, from
// either version of the kernel's control groups.
package cgroup
