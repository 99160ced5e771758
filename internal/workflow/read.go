package workflow

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Read returns the stored revision with a hash and its nested revisions; nil: one of them
// does not exist. A ConfigMap whose content does not have its hash is an error, a
// *[stored.UnsupportedError] if this operator cannot read it. The ConfigMaps of Agents
// are not read: they were created before.
func Read(ctx context.Context, get func(name string) (*corev1.ConfigMap, bool, error), hash string) (*Revision, error) {
	r := reader{get: get, done: map[string]*Revision{}}
	return r.read(ctx, hash)
}

type reader struct {
	get  func(name string) (*corev1.ConfigMap, bool, error)
	done map[string]*Revision
}

// read terminates: no revision can contain its own hash.
func (r *reader) read(ctx context.Context, hash string) (*Revision, error) {
	if v, done := r.done[hash]; done {
		return v, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cm, found, err := r.get(Name(hash))
	if err != nil || !found {
		return nil, err
	}
	data := []byte(cm.Data[dataKey])
	if task.Hash(data) != hash {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: its content is not the Workflow's revision %s that the Run started with", cm.Namespace, cm.Name, hash)
	}
	s, err := stored.DecodeWorkflow(data)
	if err != nil {
		return nil, fmt.Errorf("decoding ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	v := &Revision{Hash: hash, Name: s.Name, Spec: s.Spec(), Agents: map[string]AgentRevision{}, Workflows: map[string]*Revision{}, data: data}
	for name, a := range s.Agents {
		v.Agents[name] = AgentRevision{WorkflowAgent: a}
	}
	for _, name := range sortedKeys(s.Workflows) {
		if v.Workflows[name], err = r.read(ctx, s.Workflows[name]); err != nil || v.Workflows[name] == nil {
			return nil, err
		}
	}
	r.done[hash] = v
	return v, nil
}
