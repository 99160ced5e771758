// Package reach reads what an Agent or a Model may reach through the names in
// it, and finds those that may reach one that changed.
//
// All is read from the operator's cache, each object once, so circles end.
package refs
