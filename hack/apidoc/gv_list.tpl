{{- define "gvList" -}}
# API reference

All kinds are in the group and version `deckhand.dev/v1alpha1` and are namespaced. `kubectl explain` shows the same
text: for example `kubectl explain agent.spec.limits`. This page is made from the Go types (`make generate`).
{{ range . }}{{ template "gvDetails" . }}{{ end -}}
{{- end -}}
