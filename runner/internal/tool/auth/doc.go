// Package auth is how Toolsets speak HTTP: where they go, and how they show who
// they come from.
//
// Who wrote the Toolset said the URL, so addresses of the cluster may be
// reached; this machine, its link and metadata services may not, whatever a name
// leads to. Credentials are put in for each request where it is about to be
// sent, and only there where the Toolset's URL says: a redirect to another host
// is not followed at all. What a server refuses is tried once more when the
// Secret has changed since.
package auth
