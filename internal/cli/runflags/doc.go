// Package runflags has what a command line says of a Run: its flags, and the Run that they describe, checked
// against what its Agent or Workflow declares.
package runflags
