// Package session is the interface to a store of sessions for users and for later Runs. The store has copies: a Run
// resumes from its journal. A session is a row, which names its owner, and steps numbered from 1 without a gap. Steps
// are only appended: trying again from an earlier step is a Fork. Adapters live below this package (memory) and must
// pass the suite in sessiontest. The runner copies to a Store in the background, so a slow or unavailable store does
// not slow down the Run.
package session
