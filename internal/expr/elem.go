package expr

// Elem is the type of what is in a list or a map, or of what is there when an
// optional is not absent. Of anything else it is Dyn.
func (t Type) Elem() Type {
	if t.of == nil {
		return Dyn()
	}
	return *t.of
}

// Field is the type of a field of an object, or of a value of a map. Of what is
// not known it is Dyn.
func (t Type) Field(name string) Type {
	if t.kind == mapKind {
		return t.Elem()
	}
	return t.fields[name]
}
