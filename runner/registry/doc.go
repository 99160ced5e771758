// Package registry has what a custom runner is built of: the functions that make its
// models, tools, layers, backends and session store, and what each of them is given.
// The options of package runner take them.
package registry
