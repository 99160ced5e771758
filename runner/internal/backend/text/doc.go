// Package text is what every backend does with the content of a file: show a
// window of it, replace text in it, find lines in it, match its name. It is
// pure: it opens nothing and knows no backend.
package text
