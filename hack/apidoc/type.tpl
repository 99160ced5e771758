{{- define "type" -}}
{{- if markdownShouldRenderType . }}
## {{ .Name }}

{{ if .IsAlias }}A {{ markdownRenderType .UnderlyingType }}. {{ end }}{{ .Doc }}
{{ if .References }}
Used by: {{ range $i, $t := .SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $t }}{{ end }}
{{ end }}
{{- if .Members }}
| Field | Description | Default | Validation |
| --- | --- | --- | --- |
{{ if .GVK -}}
| `apiVersion` _string_ | `{{ .GVK.Group }}/{{ .GVK.Version }}` | | |
| `kind` _string_ | `{{ .GVK.Kind }}` | | |
{{ end -}}
{{ range .Members -}}
| `{{ .Name }}` _{{ markdownRenderType .Type }}_ | {{ template "type_members" . }} | {{ if not (contains "1970-01-01" .Default) }}{{ markdownRenderDefault .Default }}{{ end }} | {{ template "validation" . }} |
{{ end -}}
{{ end -}}
{{ if .EnumValues }}
| Value | Description |
| --- | --- |
{{ range .EnumValues -}}
| `{{ .Name }}` | {{ markdownRenderFieldDoc (.Doc | replace "\n" " ") }} |
{{ end -}}
{{ end -}}
{{- end -}}
{{- end -}}

{{- define "validation" -}}
{{- range .Validation -}}
{{- if hasPrefix "Required" . }}required<br />
{{- else if not (or (hasPrefix "Optional" .) (hasSuffix ": {}" .) (hasSuffix ": " .)) }}{{ markdownRenderFieldDoc . }}<br />{{ end -}}
{{- end -}}
{{- end -}}
