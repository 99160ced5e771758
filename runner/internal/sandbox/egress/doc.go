// Package egress is the egress proxy of a sandbox: an HTTP proxy that the runner
// serves on a unix socket and that programs in the sandbox use as HTTP_PROXY and
// HTTPS_PROXY.
//
// It connects only to the hosts that the Agent lists, by default none, and only to
// public addresses. It checks the address that it dials, so a listed name cannot
// lead into the cluster or to the metadata service of a cloud. It resolves names,
// because programs in a sandbox cannot. It does not read what a tunnel carries.
package egress
