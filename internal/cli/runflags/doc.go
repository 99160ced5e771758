// Package runflags has the flags that describe a Run, and makes the Run of them. It checks the Run against the
// declarations of its Agent or Workflow.
package runflags
