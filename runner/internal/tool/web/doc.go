// Package web has the tools that access the network: HTTPRequest, Browse and
// WebSearch.
//
// The model chooses where HTTPRequest and Browse connect to, and content that it has
// read may influence it. Therefore the address of every connection is checked
// (package address) after name resolution and for each redirect. Without a list of
// hosts only public addresses are allowed. A list of hosts allows only these, also
// at addresses of the cluster, but never the machine itself or the metadata service
// of a cloud. The proxies of the environment are not used, because the addresses
// behind one cannot be checked.
//
// Responses are bounded in decompressed bytes before they are parsed.
package web
