// Package continuing decides whether the Run that another Run continues can be read: it must have ended, and its
// conversation and its files must still exist.
package continuing
