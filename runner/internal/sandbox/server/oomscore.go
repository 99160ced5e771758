//go:build linux

package server

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// oomScoreStep is added to the oom_score_adj of commands, in thousandths of the
// memory, so that the kernel kills them before supervisors and the server.
const oomScoreStep = 100

// An oomScore is the oom_score_adj of a supervisor. Processes inherit it, so it is raised
// until the supervisor has started its command. Commands cannot lower theirs: Landlock
// refuses to write to /proc. The zero value does nothing.
type oomScore struct {
	file io.WriteCloser // nil if the kernel does not let the server write it
	own  int
}

// raiseOOMScore raises the score of a process that has not made itself undumpable yet.
func raiseOOMScore(pid int) oomScore {
	file, err := os.OpenFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), os.O_RDWR, 0)
	if err != nil {
		return oomScore{} // works without it too
	}
	text, err := io.ReadAll(file)
	own, wrong := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || wrong != nil {
		_ = file.Close() // it was only read
		return oomScore{}
	}
	s := oomScore{file: file, own: own}
	s.write(min(own+oomScoreStep, 1000))
	return s
}

// restore sets the score that the process had.
func (s oomScore) restore() {
	if s.file == nil {
		return
	}
	s.write(s.own)
	_ = s.file.Close() // may be closed already
}

func (s oomScore) write(score int) {
	_, _ = s.file.Write([]byte(strconv.Itoa(score))) // the process may have ended
}
