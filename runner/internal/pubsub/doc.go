// Package pubsub delivers values to any number of readers without ever waiting for them. Each reader has a queue of its
// own size. Values that do not fit are dropped for that reader only and counted, so a blocked reader affects neither
// the publisher nor other readers. Do not use it for values that must not be lost.
package pubsub
