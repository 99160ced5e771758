package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	chart "github.com/deckhand-dev/deckhand/charts/deckhand"
)

// kinds are the kinds of the API.
var kinds = []string{"Agent", "Decision", "Model", "Run", "Schedule", "Toolset", "Workflow"}

// A kindSchema is the compiled schema of a kind. Compiling one takes about a tenth of a second, so only needed ones are
// compiled.
type kindSchema struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

var schemas = func() map[string]func() (*kindSchema, error) {
	out := map[string]func() (*kindSchema, error){}
	for _, kind := range kinds {
		out[kind] = sync.OnceValues(func() (*kindSchema, error) { return compileSchema(kind) })
	}
	return out
}()

// schemaOf returns the schema of a kind; nil: there is no such kind.
func schemaOf(kind string) (*kindSchema, error) {
	if compile := schemas[kind]; compile != nil {
		return compile()
	}
	return nil, nil //nolint:nilnil // absent is a fact, not a fault
}

func compileSchema(kind string) (*kindSchema, error) {
	data, err := chart.CRDs.ReadFile("files/crd/deckhand.dev_" + strings.ToLower(kind) + "s.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the CRD of %s: %w", kind, err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return nil, fmt.Errorf("reading the CRD of %s: %w", kind, err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, fmt.Errorf("converting the CRD of %s: %w", kind, err)
	}
	var s kindSchema
	if s.structural, err = schema.NewStructural(&props); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", kind, err)
	}
	if err := defaulting.PruneDefaults(s.structural); err != nil {
		return nil, fmt.Errorf("reading the defaults of %s: %w", kind, err)
	}
	if s.validator, _, err = validation.NewSchemaValidator(&props); err != nil {
		return nil, fmt.Errorf("compiling the schema of %s: %w", kind, err)
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return &s, nil
}

// decode decodes an object strictly and sets its defaults, as the API server does before it
// validates.
func (s *kindSchema) decode(o *object) []problem {
	content := o.copyContent()
	out := removeBadMetadata(content)
	o.incomplete = len(out) > 0
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(content, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return append(out, problem{path: "metadata", message: err.Error()})
	}
	unknown = append(unknown, pruning.PruneWithOptions(content, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(content, s.structural)
	coerceError, more := objectmeta.CoerceWithOptions(nil, content, s.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if coerceError != nil {
		return []problem{{path: coerceError.Field, message: coerceError.ErrorBody()}}
	}
	for _, path := range append(unknown, more...) {
		o.incomplete = true
		out = append(out, problem{path: path, message: "unknown field", kind: unknownField})
	}
	content["apiVersion"], content["kind"] = o.content["apiVersion"], o.content["kind"]
	if meta != nil {
		if err := objectmeta.SetObjectMeta(content, meta); err != nil {
			return append(out, problem{path: "metadata", message: err.Error()})
		}
	}
	defaulting.Default(content, s.structural)
	delete(content, "status") // a new object has none
	o.decoded = content
	return out
}

// removeBadMetadata removes names, labels and annotations that are not strings, each of which is a
// problem.
func removeBadMetadata(content map[string]any) []problem {
	var out []problem
	remove := func(path string, values map[string]any, names ...string) {
		for _, name := range names {
			value, found := values[name]
			if _, is := value.(string); found && value != nil && !is {
				delete(values, name)
				out = append(out, problem{path: join(path, name), message: "must be a string", kind: otherType, want: "string"})
			}
		}
	}
	meta, _ := content["metadata"].(map[string]any)
	remove("metadata", meta, "name", "generateName", "namespace")
	for _, name := range []string{"labels", "annotations"} {
		values, _ := meta[name].(map[string]any)
		remove(join("metadata", name), values, sortedKeys(values)...)
	}
	return out
}

// validate validates a decoded object and evaluates its rules, as the API server does at creation. A missing field is
// not reported if an unknown field, or a name that is not a string, may be intended as that field.
func (s *kindSchema) validate(ctx context.Context, o *object) []problem {
	if o.decoded == nil {
		return nil
	}
	errs := o.validateMetadata()
	errs = append(errs, validation.ValidateCustomResource(nil, o.decoded, s.validator)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, o.decoded, s.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, o.decoded)...)
	if !isBlocking(errs) && !o.incomplete {
		ofRules, _ := s.rules.Validate(ctx, nil, s.structural, o.decoded, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, ofRules...)
	}
	var out []problem
	for _, err := range errs {
		// A value of another type has another format, too.
		format := strings.HasPrefix(err.Detail, "Checked value must be of type")
		if !format && (!o.incomplete || err.Type != field.ErrorTypeRequired) {
			out = append(out, problemOf(err))
		}
	}
	return unique(out) // a pattern and a rule say the same
}

// unique returns problems once each, in their order.
func unique(all []problem) []problem {
	var out []problem
	for _, p := range all {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// generatedSuffix is used as the end of a generated name.
const generatedSuffix = "x7k2p"

func (o *object) validateMetadata() field.ErrorList {
	path := field.NewPath("metadata")
	meta, found, err := objectmeta.GetObjectMeta(o.decoded, false)
	if err != nil {
		return field.ErrorList{field.Invalid(path, nil, err.Error())}
	}
	if !found {
		meta = &metav1.ObjectMeta{}
	}
	if meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault // kubectl sets it
	}
	generated := meta.Name == "" && meta.GenerateName != ""
	if generated {
		meta.Name = meta.GenerateName + generatedSuffix
		if inner, is := o.decoded["metadata"].(map[string]any); is {
			inner["name"] = meta.Name
		}
	}
	errs := apivalidation.ValidateObjectMeta(meta, true, apivalidation.NameIsDNSSubdomain, path)
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return generated && err.Field == "metadata.name" // the same as of generateName
	})
}

// isBlocking reports whether the API server does not evaluate rules because of these errors.
func isBlocking(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		default:
		}
	}
	return false
}
