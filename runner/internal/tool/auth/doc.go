// Package auth is the HTTP client of Toolsets: which addresses it reaches, and how it authenticates. The author of the
// Toolset chose the URL, so addresses in the cluster are allowed. The machine itself, link-local addresses and metadata
// services are not, whatever a name resolves to. Credentials are added when a request is sent, and only to requests to
// the Toolset's URL: a redirect to another host is not followed. If the server refuses them and the Secret has changed
// meanwhile, the request is sent once more.
package auth
