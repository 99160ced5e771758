// Package catalog knows the windows of well-known models, and what they take, for Models that do not
// say it.
//
// A wrong figure does little harm: one that is too small compacts a session
// early, one that is too large lets the provider say so. Who knows better writes
// contextWindow and maxOutputTokens into the Model.
package catalog
