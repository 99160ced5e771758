// Package convert rewrites manifests with former names of fields, values or tools to current names. It works on the
// text, so comments, order and unaffected lines are unchanged. A document that it cannot convert without a loss is
// unchanged, and internal/cli/lint describes what to write.
package convert
