// Package egress is the way out of a sandbox: an HTTP proxy that the runner
// serves on a unix socket, and that programs in the sandbox reach as
// HTTP_PROXY and HTTPS_PROXY.
//
// It connects only to the hosts that the Agent names, by default none, and only
// to public addresses, judged when they are about to be dialed: a name of the
// list that leads into the cluster, or to the metadata service of a cloud, leads
// nowhere. Names are resolved here, since programs in a sandbox cannot. What
// goes through a tunnel is between the program and the host.
package egress
