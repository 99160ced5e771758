// Package reference has the pages whose tables programs read: what the fields of other tools,
// and the fields before v0.1.0, are called.
package reference

import _ "embed" // the pages

// FieldNames is the page of names from other tools.
//
//go:embed field-names.md
var FieldNames string

// APIChanges is the page of names from before v0.1.0.
//
//go:embed api-changes.md
var APIChanges string
