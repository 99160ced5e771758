// Package python is the tool that runs Python in the sandbox, in interpreters
// that stay: what code defines is there for the code after it.
//
// An interpreter runs driver.py, which is told over stdin what to do and says
// over file descriptor 3 what came of it (protocol.go). What code prints is apart
// from both. Whatever happens to an interpreter, the model is told: code that
// takes too long is interrupted first, so that its variables stay, and only then
// killed; the call after the end of an interpreter has a new one.
package python
