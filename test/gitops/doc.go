// Package gitops shows what GitOps tools make of a Run, with their own libraries:
// how Flux applies and compares it, and how all of them read its conditions. It is a
// module of its own because those libraries bring much of kubectl with them.
package gitops
