// Package agent is the controller of Agents: it says whether one is Ready, that
// is, whether everything it names is there, and removes versions of it that no
// unfinished Run needs any more.
package agent
