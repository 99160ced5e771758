// Package agentsmd reads what a workspace tells the agents that work in it: its
// AGENTS.md. It is shown to the model with the first that the user says, marked
// as what it is: words of the workspace, not of the user.
package agentsmd
