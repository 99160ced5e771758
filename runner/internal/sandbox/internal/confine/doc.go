// Package confine removes from a thread and its future children what commands do not
// need: privileges, network access, and changes to the files of the sandbox.
//
// It uses three features of the kernel, each as far as the kernel supports it:
//
//   - no_new_privs: an executed program cannot gain privileges.
//   - seccomp (filter.go): only TCP, unix and NETLINK_ROUTE sockets; no user namespaces and no
//     other ABIs; and no system calls that ordinary programs never use. Nothing may bypass the
//     hooks of Landlock: io_uring, TCP Fast Open, other protocols that connect to TCP servers,
//     and source routes. The limits and scheduling of other processes cannot be changed
//     (ownResources).
//   - Landlock (landlock.go): TCP only to ports from 1024, no changes below the
//     protected directory, and signals only to confined processes.
//
// On a machine that is not a container (PrivateThread), Landlock allows no port, and the
// filter leaves the connect calls to the server, which connects to the proxy
// only.
//
// Package probe measures whether it is effective.
package confine
