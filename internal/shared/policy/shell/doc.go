// Package shell finds the programs that a command line runs, and whether it runs
// something that it does not show.
//
// [Read] parses a line as bash or sh does and walks its syntax tree: lists, pipes,
// subshells and substitutions. It follows about ten well-known programs that run
// another one, for example sudo, env, xargs, find -exec and sh -c. Other programs
// that run a program, code or a file of commands are not followed. Those on the
// lists of names and options in launchers.go make the line opaque, whatever the
// version in the name: perl5.36 is perl. The lists are open: a program that is not
// on them is read as one that runs nothing. Nothing is executed or looked up.
//
// In doubt a line is opaque, and [Line.Runs] is true: for each word of a part that
// could not be followed, and for a word that is only known when the line runs.
//
// This tells users what is about to happen. It is not a security boundary: a model
// can use a launcher that is not listed, or write a program to a file and run it by
// a harmless name. The sandbox is the boundary.
package shell
