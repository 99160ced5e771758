package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
)

// Bounds of jobs.
const (
	maxJobs         = 16        // running
	maxEnded        = 16        // ended, with output that can be read
	jobOutput       = 512 << 10 // bytes that are kept of a running job
	jobRest         = 64 << 10  // bytes that are kept after it ended
	firstOutputWait = time.Second
)

// A job is a command in the background.
type job struct {
	id       string
	line     string // shortened
	timeout  time.Duration
	end      context.CancelFunc
	hasEnded atomic.Bool   // it ended
	done     chan struct{} // closed after that was saved

	mu      sync.Mutex
	cleaner output.Cleaner
	ring    *output.Ring
	shown   int64 // offset up to which the model has read
	exit    sandbox.Exit
	err     error
}

// running reports whether the job has not ended.
func (j *job) running() bool { return !j.hasEnded.Load() }

// receive reads the output until the job ends.
func (j *job) receive(p sandbox.Process) {
	for chunk := range p.Output() {
		if chunk.Stream != sandbox.Control {
			j.write(chunk.Data)
		}
	}
	exit, err := p.Wait(context.Background()) // it has ended
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring.Write(j.cleaner.Flush())
	j.ring.Shrink(jobOutput)
	j.exit, j.err = exit, err
	j.hasEnded.Store(true)
}

func (j *job) write(data []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring.Write(j.cleaner.Write(data))
}

// newOutput returns the output since the last call, and the status. An incomplete
// line is returned again when it is complete.
func (j *job) newOutput() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text, lost := j.ring.Since(j.shown)
	j.shown = j.ring.Total()
	clip := output.NewClip(output.Shown)
	clip.Write(text)
	clip.Write(j.cleaner.Pending())
	head, tail := clip.Ends()
	body := head + tail
	if cut := clip.Cut(); cut > 0 {
		body = fmt.Sprintf("%s\n\n[%d characters are cut out here]\n\n%s", head, cut, tail)
	}
	if body == "" {
		body = "(no new output)"
	}
	missed := ""
	if lost > 0 {
		missed = fmt.Sprintf("[%d bytes before this are not kept]", lost)
	}
	if !j.running() {
		j.ring.Shrink(jobRest)
		j.shown = 0 // the next call returns the end again
	}
	return output.Lines(missed, body, j.status())
}

// status returns the last line of a result.
func (j *job) status() string {
	if j.running() {
		return "still running"
	}
	if j.err != nil {
		return fmt.Sprintf("ended for an unknown reason: %v", j.err)
	}
	return output.Ended(j.exit, j.timeout)
}

// failed reports whether the command ended without success.
func (j *job) failed() bool {
	return !j.running() && (j.err != nil || output.Failed(j.exit))
}

// errTooMany means that maxJobs commands run in the background.
var errTooMany = errors.New("too many background commands")

// launch starts a job, which outlives the call.
func (c *command) launch(ctx context.Context) (*job, error) {
	life, end := context.WithCancel(c.ctx)
	j, err := c.reserve(end)
	if err != nil {
		end()
		return nil, err
	}
	stop := context.AfterFunc(ctx, end)
	p, err := c.start(life, maxBackgroundOutput)
	if err == nil && !stop() {
		go drain(p)
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		c.remove(j)
		return nil, err
	}
	c.attending.Go(func() {
		defer close(j.done)
		defer end()
		j.receive(p)
		c.removeOldest()
	})
	return j, nil
}

// reserve adds a job for the command before it is started.
func (c *command) reserve(end context.CancelFunc) (*job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count() >= maxJobs {
		return nil, errTooMany
	}
	c.state.Jobs++
	j := &job{
		id: fmt.Sprintf("job-%d", c.state.Jobs), line: shorten(c.line), timeout: c.timeout,
		ring: output.NewRing(jobOutput), end: end, done: make(chan struct{}),
	}
	c.jobs = append(c.jobs, j)
	c.save()
	return j, nil
}

func (s *Shells) remove(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = slices.DeleteFunc(s.jobs, func(other *job) bool { return other == j })
	s.save()
}

// removeOldest removes the oldest ended jobs if there are more than maxEnded.
func (s *Shells) removeOldest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	surplus := len(s.jobs) - s.count() - maxEnded
	s.jobs = slices.DeleteFunc(s.jobs, func(j *job) bool {
		if surplus <= 0 || j.running() {
			return false
		}
		surplus--
		return true
	})
	s.save()
}

// Running returns how many commands run in the background.
func (s *Shells) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count()
}

func (s *Shells) count() int {
	n := 0
	for _, j := range s.jobs {
		if j.running() {
			n++
		}
	}
	return n
}

// job finds a job by its ID, with or without the prefix.
func (s *Shells) job(id string) (*job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.id == strings.TrimSpace(id) || strings.TrimPrefix(j.id, "job-") == strings.TrimSpace(id) {
			return j, true
		}
	}
	return nil, false
}

// list describes all jobs, for errors.
func (s *Shells) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, j := range s.jobs {
		how := "ended"
		if j.running() {
			how = "running"
		}
		all = append(all, fmt.Sprintf("%s (%s, %s)", j.id, j.line, how))
	}
	return strings.Join(all, "; ")
}
