// Package operator puts the controllers, their caches and their guard together
// into one manager.
package operator
