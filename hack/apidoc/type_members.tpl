{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
Standard object metadata.
{{- else -}}
{{ markdownRenderFieldDoc (.Doc | replace "\n" " ") }}
{{- end -}}
{{- end -}}
