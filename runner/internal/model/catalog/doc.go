// Package catalog has the windows of well-known models, and which files they accept, for Models that do not set them. A
// wrong value does little harm: if it is too small, a session is compacted early; if it is too large, the provider
// refuses the request. Users can set contextWindow and maxOutputTokens of the Model.
package catalog
