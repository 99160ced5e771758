package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Input declares the values that something is given: as a JSON Schema, or as a list
// of fields, which is the short form. Expressions and templates read them as
// input.x.
//
// +kubebuilder:validation:XValidation:rule="has(self.schema) != has(self.fields)",message="write schema or fields, one of the two: fields: [{name: topic}]"
type Input struct {
	// schema is a JSON Schema of type object, at most 16 KiB and 8 levels deep,
	// without $ref, oneOf, anyOf, allOf and not. A property with a default is never
	// absent.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Schema *runtime.RawExtension `json:"schema,omitempty"`

	// fields are the values, one each. Others are refused.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Fields []Field `json:"fields,omitempty"`
}

// Field declares one value of an input.
//
// +kubebuilder:validation:XValidation:rule="!has(self.schema) || !has(self.type)",message="a schema includes the type: remove type"
type Field struct {
	// name of the field.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z_][a-zA-Z0-9_]*$')",message="must be a name that expressions can read: letters, digits and _"
	// +required
	Name string `json:"name"`

	// type is String, Integer, Number, Boolean, List or Object. Default String.
	// +kubebuilder:validation:Enum=String;Integer;Number;Boolean;List;Object
	// +optional
	Type FieldType `json:"type,omitempty"`

	// schema is a JSON Schema of the value, instead of type.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Schema *runtime.RawExtension `json:"schema,omitempty"`

	// description says what the value is, for people and models.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Description string `json:"description,omitempty"`

	// default is the value if none is given. If it does not fit the type, the object
	// is not Ready, reason InputInvalid.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Default *runtime.RawExtension `json:"default,omitempty"`

	// required says whether the value must be given. An expression reads a value that
	// may be absent as an optional. Default true, or false with a default.
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
