// Package compaction keeps a session within what a model can read.
//
// It only computes: how full the window is (Used), from where on that is too
// much (Trigger), what to hide (Plan) and what the session looks like then
// (Apply). Doing it, and recording it, is the loop's. Nothing here changes the
// steps that it is given.
package compaction
