// Package confine takes from a thread, and from all that it will ever start,
// what a program of an agent has no use for: privileges, ways out of the machine
// and the sandbox's own files.
//
// Three things of the kernel do it, each as far as the kernel has it:
//
//   - no_new_privs: nothing that is executed has more rights than who executes it.
//   - seccomp (filter.go): sockets are of TCP, unix or for asking the kernel about
//     its interfaces; there is no way around the hooks of Landlock (io_uring, TCP
//     Fast Open, the other protocols that speak TCP); no user namespace, no other
//     ABI, no change to the limits and scheduling of other processes (resources.go), none of the system calls that an ordinary program never needs.
//   - Landlock (landlock.go): TCP leads to ports from 1024 on, nothing beneath the
//     protected directory is made, changed or removed, and signals reach only what
//     is confined as well.
//
// Whether it holds is for package probe to find out.
package confine
