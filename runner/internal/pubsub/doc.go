// Package pubsub carries values to any number of readers without ever waiting for
// one of them.
//
// Each reader has a queue of a size that it chose. What does not fit is
// dropped for that reader alone and counted, so a reader that is stuck costs
// the publisher and the other readers nothing. Nothing that must not be lost
// goes by a bus.
package pubsub
