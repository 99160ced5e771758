// Package children has what Runs and the Runs that are parts of them have in common,
// whether a workflow or an agent created these.
package children
