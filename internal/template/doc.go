// Package template puts the values of an input into texts.
//
// Where a text says ${{ input.repo.name }}, Bind puts that value: a string as
// it is, anything else as compact JSON. A path is the word input followed by
// any number of .name, ["name"] and [index]. A value is bound, not pasted: what
// it contains is never read again, so an input cannot refer to
// another. A literal ${{ is written $${{.
package template
