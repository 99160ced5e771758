// Package convert rewrites manifests that have names of fields, values or tools from before to
// those of today. It works on the text: comments, order and all lines that need no change stay. What
// it cannot convert without a loss it leaves as it is, and internal/cli/lint says what to write.
package convert
