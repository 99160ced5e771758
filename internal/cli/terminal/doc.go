// Package terminal has the streams of a command, and the user at them: questions and their answers, the line that
// shows how it stands, and text that is harmless for a terminal.
package terminal
