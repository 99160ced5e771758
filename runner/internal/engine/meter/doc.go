// Package meter counts what a Run uses: steps, calls, tokens, cost and time, and
// says when a limit is reached. Each session has an account, which counts into
// those above it. The clock stands still while all of the work waits.
package meter
