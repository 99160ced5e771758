// Package skill reads skills: folders with instructions for a kind of work, in the format of agentskills.io.
package skill
