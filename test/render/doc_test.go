// Package render_test holds the chart to what it promises, whatever values it is
// given, and the kustomization to the chart.
package render_test
