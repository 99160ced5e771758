// Package gitops tests how GitOps tools handle a Run, with their own libraries: how Flux applies and compares it, and
// how the tools read its conditions. It is a module of its own because those libraries bring much of kubectl with them.
package gitops
