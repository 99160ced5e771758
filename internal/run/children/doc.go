// Package children has what a Run does with its child Runs, whether a workflow or an agent
// asks for them: it names and creates them, sets their desired states, and shares a budget
// among them.
package children
