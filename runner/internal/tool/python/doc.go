// Package python is the tool that runs Python in the sandbox. Its interpreters keep
// the variables of earlier calls.
//
// An interpreter runs driver.py, which reads requests from stdin and writes answers
// to file descriptor 3 (protocol.go), separate from what code prints. Code that times
// out is interrupted first, which keeps its variables, and killed if it does not
// stop. After an interpreter has ended, the next call starts a new one and its result
// says so.
package python
