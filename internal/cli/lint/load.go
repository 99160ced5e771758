package lint

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
)

// Objects are the objects of files as the API server would store them, with defaults. Their
// namespaces are ignored.
type Objects struct {
	Agents   map[string]*v1alpha1.Agent
	Models   map[string]*v1alpha1.Model
	Toolsets map[string]*v1alpha1.Toolset
	// Runs are in the order of the files, and may have no name.
	Runs []*v1alpha1.Run
	// Secrets have the data that the API server makes of stringData.
	Secrets map[string]*corev1.Secret
	// SecretsAt has the file and the line of each Secret.
	SecretsAt map[string]string
}

// Load checks files like Files, and returns the objects that the API server would accept.
func Load(ctx context.Context, files []File, now time.Time) (*Report, *Objects, error) {
	l := linter{report: &Report{Findings: []Finding{}, Skipped: []Skipped{}}, now: now}
	if err := l.check(ctx, files); err != nil {
		return nil, nil, err
	}
	out := &Objects{
		Agents: map[string]*v1alpha1.Agent{}, Models: map[string]*v1alpha1.Model{}, Toolsets: map[string]*v1alpha1.Toolset{},
		Secrets: map[string]*corev1.Secret{}, SecretsAt: map[string]string{},
	}
	for _, o := range slices.Concat(l.objects, l.others) {
		if err := out.add(o); err != nil {
			return nil, nil, fmt.Errorf("%s:%d: reading %s %s: %w", o.file, o.line(""), o.kind(), o.name(), err)
		}
	}
	return l.report, out, nil
}

// add adds an object of a kind that Objects has, unless it could not be decoded.
func (s *Objects) add(o *object) error {
	if o.kind() == "Secret" && text(o.content, "apiVersion") == "v1" {
		return s.addSecret(o)
	}
	if o.decoded == nil {
		return nil
	}
	switch o.kind() {
	case "Agent":
		return addTyped(o, s.Agents)
	case "Model":
		return addTyped(o, s.Models)
	case "Toolset":
		return addTyped(o, s.Toolsets)
	case "Run":
		run := &v1alpha1.Run{}
		s.Runs = append(s.Runs, run)
		if err := o.convert(run); err != nil && !o.invalid { // else the findings say why
			return err
		}
		return nil
	default:
		return nil
	}
}

func addTyped[T any, P interface {
	*T
	refs.Object
}](o *object, to map[string]P) error {
	typed := P(new(T))
	err := o.convert(typed)
	if err != nil && !o.invalid {
		return err
	}
	if err != nil { // the findings say why, and other objects may name it
		typed = new(T)
		typed.SetName(o.name())
	}
	to[typed.GetName()] = typed
	return nil
}

func (s *Objects) addSecret(o *object) error {
	data, err := json.Marshal(o.content)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := json.Unmarshal(data, secret); err != nil {
		return err
	}
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	s.Secrets[secret.Name], s.SecretsAt[secret.Name] = secret, fmt.Sprintf("%s:%d", o.file, o.line(""))
	return nil
}
