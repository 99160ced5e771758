// Package web is the tools that reach the world: HTTPRequest, Browse and
// WebSearch.
//
// A model says where HTTPRequest and Browse go, and so may whoever wrote what
// the model read. Therefore every connection is judged by the address that it is
// about to be made to (package address), after the name was resolved and for
// each hop of a redirect: what a name led to a moment ago does not count.
// Without a list of hosts only public addresses are reached; a list of hosts is
// all there is, and opens addresses of the cluster, but never the machine itself
// or the metadata service of a cloud. Proxies of the environment are not used:
// behind one nobody could judge.
//
// Everything that comes back is bounded before it is looked at, in bytes that
// are already decompressed.
package web
