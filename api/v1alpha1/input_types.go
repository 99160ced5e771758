package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Input declares values that are given: as a list of fields, or as a JSON Schema. Exactly one
// of the two is required.
//
// +kubebuilder:validation:XValidation:rule="has(self.schema) != has(self.fields)",messageExpression="'exactly one of schema and fields is required: ' + (has(self.schema) ? 'remove one of the two' : 'write fields: [{name: topic}]')"
type Input struct {
	// schema is a JSON Schema of type object, at most 16 KiB and 8 levels deep, without $ref,
	// oneOf, anyOf, allOf and not. Use it instead of fields if a value needs more than a type.
	// A property with a default is always present.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Schema *runtime.RawExtension `json:"schema,omitempty"`

	// fields declare one value each, at most 32. Values that are not declared are refused.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Fields []Field `json:"fields,omitempty"`
}

// Field declares one value of an input.
//
// +kubebuilder:validation:XValidation:rule="!has(self.schema) || !has(self.type)",message="schema and type are not allowed together: remove type, because a schema includes the type"
type Field struct {
	// name is the name of the field. Expressions read it as input.<name>.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",message="must be a name that expressions can read: letters, digits and _"
	// +required
	Name string `json:"name"`

	// type is the type of the value. Default String.
	// +kubebuilder:validation:Enum=String;Integer;Number;Boolean;List;Object
	// +optional
	Type FieldType `json:"type,omitempty"`

	// schema is a JSON Schema of the value. Use it instead of type.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Schema *runtime.RawExtension `json:"schema,omitempty"`

	// description is what the value is, for users and models.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Description string `json:"description,omitempty"`

	// default is the value that is used if none is given. If it does not match the type, or if
	// required is true, the object is not Ready, reason Invalid.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Default *runtime.RawExtension `json:"default,omitempty"`

	// required is whether the value must be given. In an expression, a value that may be absent
	// is an optional value. Default true; false if there is a default.
	// +optional
	Required *bool `json:"required,omitempty"`
}

// FieldType is the type of a value.
type FieldType string

// The types of values.
const (
	FieldString  FieldType = "String"
	FieldInteger FieldType = "Integer"
	FieldNumber  FieldType = "Number"
	FieldBoolean FieldType = "Boolean"
	FieldList    FieldType = "List"
	FieldObject  FieldType = "Object"
)
