// Package compaction keeps a session within a model's context window. It only computes: how full the window is (Used),
// above which size a session is compacted (Trigger), what to hide (Plan), and the session after that (Apply). The loop
// executes and records it. Nothing here changes the given steps.
package compaction
