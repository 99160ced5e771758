// Package memory is a session store in memory. It is bounded: it refuses what exceeds its bounds.
package memory
