// Package inputtext inserts values of an input into texts with expressions in ${{ }}: instructions, prompts and
// requests.
//
// An expression is CEL and reads input, whose type comes from a JSON Schema. A path, such as input.repo.name, is
// evaluated without CEL, which takes milliseconds to set up: most texts have only paths, and a runner starts in a few
// milliseconds. The value is the same as with CEL. All other expressions are compiled where they are used:
// [Text.Compile] compiles all expressions of a text, and an evaluation compiles the remaining ones.
//
// An inserted value is never read as an expression.
package inputtext
