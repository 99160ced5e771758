// Package inputtext puts values of an input into texts with expressions in ${{ }}:
// instructions, prompts and requests.
//
// An expression is CEL and reads input, whose type is that of a JSON Schema. A path, such as
// input.repo.name, is evaluated without CEL, which takes milliseconds to set up: most texts
// have nothing else, and a runner starts in a few milliseconds. It has the value that CEL
// gives. All other expressions are compiled where they are used: [Text.Compile] checks a text
// that is written, and an evaluation compiles what is not compiled yet.
//
// A value is inserted, not pasted: what it contains is never read as an expression.
package inputtext
