// Package template finds the expressions in ${{ }} in a text, and reads those that are paths
// without CEL. Package inputtext puts values in their place.
package template
