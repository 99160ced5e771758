// Package stored is the form in which revisions of Agents and Workflows are kept in
// ConfigMaps. A revision outlives upgrades and rollbacks of the operator, so the form
// is independent of the public API: its structs are used for nothing else, and each
// document has a version.
//
// # Changing the form
//
// Within a version an optional field may be added if its absence means what revisions
// without it meant. Every other change (a renamed or removed field, another unit,
// another meaning) takes a new version: keep the old structs in a file of their own,
// convert them in their decoder, and add testdata/revisions/vN with a document for
// each kind. Documents of old versions there are never changed.
package stored
