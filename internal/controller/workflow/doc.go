// Package workflow is the controller of Workflows: it says whether one is Ready,
// that is, whether everything that its nodes name is there and everything that
// they read has the right type, and removes versions of it that no unfinished Run
// needs any more.
//
// A version is needed by the Runs that started with it and by the versions of
// other Workflows that name it; versions of Agents are swept by the controller of
// Agents, which asks the same. So what goes when a Run ends goes from the outside
// in, each a little after the one before.
package workflow
