// Package shell says which programs a command line runs, and whether it runs
// something that it does not show.
//
// [Read] parses a line as bash or sh would and follows it into lists, pipes,
// subshells, functions, substitutions, and through programs that run others:
// sudo rm, xargs rm, find -exec rm, sh -c 'rm'. Nothing is executed and nothing
// is looked up, so two things stay open: what a name on the line leads to, and
// what is in the files that it reads.
//
// Every doubt falls to one side. A line that cannot be read is opaque and runs
// every program that it names; a word that is only known when the line runs may
// be any word. [Line.Runs] is therefore true too often rather than too rarely.
//
// That is a courtesy to people who want to be asked before something happens.
// It is not a wall: who wants to deceive it writes a file first and runs that
// with a harmless name. A sandbox is the wall.
package shell
