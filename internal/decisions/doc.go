// Package answer says what becomes of a Decision, from what its Run asks and
// what its runner says that it did: pure. The controller of Decisions reports
// it, that of Runs hands on those that nothing is known of yet, so both always
// agree.
package decisions
