{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
Standard object metadata.
{{- else -}}
{{ markdownRenderFieldDoc (.Doc | replace "\n  - " "<br />- " | replace "\n\n" "<br />" | replace "\n    " " " | replace "\n" " ") }}
{{- end -}}
{{- end -}}
