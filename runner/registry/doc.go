// Package registry has the factories of a custom runner, which make its models, tools, layers, backends and session
// store, and their inputs. The options of package runner accept them.
package registry
