// Package providers asks real model providers for one short answer each, with keys from
// the environment: make smoke-providers. CI of changes does not run it, because it needs
// keys and the Internet, and costs money.
package providers
