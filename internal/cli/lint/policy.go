package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	chart "github.com/deckhand-dev/deckhand/charts/deckhand"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// A policy is a compiled ValidatingAdmissionPolicy.
type policy struct {
	name        string
	resources   []string
	conditions  cel.ConditionEvaluator
	validations cel.ConditionEvaluator
	messages    cel.ConditionEvaluator
	texts       []string // of validations, if the expression of a message gives none
}

// policies returns the policies of the chart that apply to new objects of the API.
var policies = sync.OnceValues(func() ([]policy, error) {
	files, err := fs.Glob(chart.Policies, "files/policy/*.yaml")
	if err != nil {
		return nil, err
	}
	var out []policy
	for _, file := range files {
		data, err := chart.Policies.ReadFile(file)
		if err != nil {
			return nil, err
		}
		of, err := readPolicies(data)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		out = append(out, of...)
	}
	return out, nil
})

func readPolicies(data []byte) ([]policy, error) {
	var out []policy
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(data)), len(data))
	for {
		var p admissionregistrationv1.ValidatingAdmissionPolicy
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		}
		resources := createdResources(&p)
		if p.Kind != "ValidatingAdmissionPolicy" || len(resources) == 0 {
			continue
		}
		compiled, err := compilePolicy(&p)
		if err != nil {
			return nil, err
		}
		compiled.resources = resources
		out = append(out, compiled)
	}
}

// createdResources returns the resources of the API whose creation a policy controls.
func createdResources(p *admissionregistrationv1.ValidatingAdmissionPolicy) []string {
	var out []string
	if p.Spec.MatchConstraints == nil {
		return nil
	}
	for _, rule := range p.Spec.MatchConstraints.ResourceRules {
		if slices.Contains(rule.APIGroups, v1alpha1.GroupVersion.Group) && slices.Contains(rule.Operations, admissionregistrationv1.Create) {
			out = append(out, rule.Resources...)
		}
	}
	return out
}

// An expression is an expression of a policy, with the type of its value.
type expression struct {
	name, text string
	typ        *celgo.Type
}

func (e *expression) GetExpression() string      { return e.text }
func (e *expression) GetName() string            { return e.name }
func (e *expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.typ} }

// compilePolicy compiles a policy as the API server does.
func compilePolicy(p *admissionregistrationv1.ValidatingAdmissionPolicy) (policy, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return policy{}, err
	}
	withAuthorizer := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range p.Spec.Variables {
		compiler.CompileAndStoreVariable(&expression{v.Name, v.Expression, celgo.AnyType}, withAuthorizer, environment.StoredExpressions)
	}
	var conditions, validations, messages []cel.ExpressionAccessor
	var texts []string
	for _, c := range p.Spec.MatchConditions {
		conditions = append(conditions, &expression{c.Name, c.Expression, celgo.BoolType})
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations, &expression{"", v.Expression, celgo.BoolType})
		texts = append(texts, v.Message)
		message := v.MessageExpression
		if message == "" {
			message = "''"
		}
		messages = append(messages, &expression{"", message, celgo.StringType})
	}
	out := policy{
		name:        p.Name,
		conditions:  compiler.CompileCondition(conditions, withAuthorizer, environment.StoredExpressions),
		validations: compiler.CompileCondition(validations, withAuthorizer, environment.StoredExpressions),
		messages:    compiler.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.StoredExpressions),
		texts:       texts,
	}
	return out, errors.Join(errors.Join(out.conditions.CompilationErrors()...), errors.Join(out.validations.CompilationErrors()...), errors.Join(out.messages.CompilationErrors()...))
}

// checkPolicies evaluates the policies for a user of agents who creates an object. If the object names a user, that user
// creates it.
func checkPolicies(ctx context.Context, o *object) ([]problem, error) {
	all, err := policies()
	if err != nil {
		return nil, err
	}
	resource := strings.ToLower(o.kind()) + "s"
	var out []problem
	for _, p := range all {
		if !slices.Contains(p.resources, resource) {
			continue
		}
		problems, err := p.check(ctx, request(o, resource))
		if err != nil {
			return nil, fmt.Errorf("evaluating policy %s: %w", p.name, err)
		}
		out = append(out, problems...)
	}
	return out, nil
}

func request(o *object, resource string) *admission.VersionedAttributes {
	content := &unstructured.Unstructured{Object: o.decoded}
	by := &user.DefaultInfo{Name: cmp.Or(text(o.decoded, "spec", "by"), text(o.decoded, "spec", "user"), text(o.decoded, "spec", "runTemplate", "spec", "user"))}
	by.Groups, _, _ = unstructured.NestedStringSlice(o.decoded, "spec", "groups") // the schema has checked it
	kind := v1alpha1.GroupVersion.WithKind(o.kind())
	namespace := content.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(content, nil, kind, namespace, content.GetName(),
			v1alpha1.GroupVersion.WithResource(resource), "", admission.Create, &metav1.CreateOptions{}, false, by),
		VersionedKind:   kind,
		VersionedObject: admission.NewLazyObject(content),
	}
}

// check returns the problems for which the policy refuses the object.
func (p *policy) check(ctx context.Context, of *admission.VersionedAttributes) ([]problem, error) {
	request := cel.CreateAdmissionRequest(of.Attributes, metav1.GroupVersionResource(of.GetResource()), metav1.GroupVersionKind(of.VersionedKind))
	evaluate := func(e cel.ConditionEvaluator, bindings cel.OptionalVariableBindings) ([]cel.EvaluationResult, error) {
		results, _, err := e.ForInput(ctx, of, request, bindings, nil, celconfig.RuntimeCELCostBudget)
		return results, err
	}
	bindings := cel.OptionalVariableBindings{Authorizer: userRights{}}
	conditions, err := evaluate(p.conditions, bindings)
	if err != nil || slices.ContainsFunc(conditions, isNot) {
		return nil, err
	}
	validations, err := evaluate(p.validations, bindings)
	if err != nil {
		return nil, err
	}
	for _, v := range validations {
		if v.Error != nil {
			return nil, v.Error
		}
	}
	if !slices.ContainsFunc(validations, isNot) {
		return nil, nil
	}
	messages, err := evaluate(p.messages, cel.OptionalVariableBindings{})
	if err != nil {
		return nil, err
	}
	var out []problem
	for i, v := range validations {
		if isNot(v) {
			out = append(out, problem{message: messageOf(messages[i], p.texts[i])})
		}
	}
	return out, nil
}

func isNot(r cel.EvaluationResult) bool { return r.EvalResult != celtypes.True }

func messageOf(r cel.EvaluationResult, otherwise string) string {
	if r.Error == nil && r.EvalResult != nil {
		if text, is := r.EvalResult.Value().(string); is && strings.TrimSpace(text) != "" {
			return strings.TrimSpace(text)
		}
	}
	return strings.TrimSpace(otherwise)
}

// userRights allows to continue Runs, as the ClusterRole for users of agents does, and nothing else.
type userRights struct{}

func (userRights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() == "get" && a.GetResource() == "runs" && a.GetSubresource() == "session" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// checkRulesOfInvalid checks the policy of an Agent that the API server refuses for something else, so that
// all errors are in one report. If the error is in its tools, it is unknown what the rules are about.
func (l *linter) checkRulesOfInvalid(ctx context.Context, o *object) {
	if o.kind() != "Agent" || o.decoded == nil || slices.ContainsFunc(o.invalidPaths, isIn("spec.tools")) {
		return
	}
	var a v1alpha1.Agent
	if o.withoutInvalid().convert(&a) != nil {
		return
	}
	_, objects, err := l.withObjects(ctx, &a)
	if err != nil {
		return
	}
	before := slices.Clone(o.invalidPaths)
	for _, problem := range snapshot.PolicyProblems(&a, objects) {
		path, message := o.locate(problem)
		if !slices.ContainsFunc(before, isIn(path)) {
			l.addRefused(o, path, message)
		}
	}
}

// isIn returns a function that reports whether a path is a field or below it.
func isIn(field string) func(path string) bool {
	return func(path string) bool {
		rest, is := strings.CutPrefix(path, field)
		return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
}

// withoutInvalid returns a copy of an object without the fields of spec that have errors, but for its policy.
func (o *object) withoutInvalid() *object {
	out := &object{document: o.document, content: o.decoded}
	out.decoded = out.copyContent()
	spec, _ := out.decoded["spec"].(map[string]any)
	for name := range spec {
		if name != "policy" && slices.ContainsFunc(o.invalidPaths, isIn("spec."+name)) {
			delete(spec, name)
		}
	}
	return out
}
