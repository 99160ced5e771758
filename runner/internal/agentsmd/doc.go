// Package agentsmd reads the instructions of a workspace for agents: its AGENTS.md. The model gets them with the first
// message of the user, marked as text of the workspace and not of the user.
package agentsmd
