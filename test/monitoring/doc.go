// Package monitoring tests the alerts and the dashboard of the chart with the libraries of
// Prometheus. It is a module of its own because of their dependencies.
package monitoring
