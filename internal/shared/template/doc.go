// Package template finds the expressions in ${{ }} in a text, and evaluates paths without CEL. Package inputtext
// replaces them by values.
package template
