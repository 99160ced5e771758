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
func (o *Objects) add(added *object) error {
	if added.kind() == "Secret" && text(added.content, "apiVersion") == "v1" {
		return o.addSecret(added)
	}
	if added.decoded == nil {
		return nil
	}
	switch added.kind() {
	case "Agent":
		return addTyped(added, o.Agents)
	case "Model":
		return addTyped(added, o.Models)
	case "Toolset":
		return addTyped(added, o.Toolsets)
	case "Run":
		run := &v1alpha1.Run{}
		o.Runs = append(o.Runs, run)
		if err := added.convert(run); err != nil && !added.invalid { // else the findings say why
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

func (o *Objects) addSecret(added *object) error {
	data, err := json.Marshal(added.content)
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
	o.Secrets[secret.Name], o.SecretsAt[secret.Name] = secret, fmt.Sprintf("%s:%d", added.file, added.line(""))
	return nil
}
