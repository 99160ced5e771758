// Package meter counts what a Run uses (steps, calls, tokens, cost and time) and reports when a limit is reached. Each
// session has an account, which also counts into the accounts above it. The clock stops while the whole Run waits.
package meter
