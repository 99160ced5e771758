{{/* The name of what this release installs: deckhand, or prod-deckhand. */}}
{{- define "deckhand.name" -}}
{{- $name := contains "deckhand" .Release.Name | ternary .Release.Name (printf "%s-deckhand" .Release.Name) -}}
{{- trunc 48 $name | trimSuffix "-" -}}
{{- end }}

{{/* What a file of config/ calls deckhand-x, in this release: (list $ "deckhand-x"). */}}
{{- define "deckhand.renamed" -}}
{{- $root := index . 0 -}}
{{- regexReplaceAll "^deckhand" (index . 1) (include "deckhand.name" $root) -}}
{{- end }}

{{- define "deckhand.selector" -}}
app.kubernetes.io/name: deckhand
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "deckhand.labels" -}}
{{ include "deckhand.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* An image by its digest, else by its tag: (list $ .Values.image). */}}
{{- define "deckhand.image" -}}
{{- $root := index . 0 -}}
{{- with index . 1 -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $root.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{/* Where a mirror has an image: its name without the registry. (list "mirror.example/hub" "ghcr.io/a/b:1"). */}}
{{- define "deckhand.mirrored" -}}
{{- $mirror := index . 0 -}}
{{- $image := index . 1 -}}
{{- $first := first (splitList "/" $image) -}}
{{- if has $first (list "docker.io" "index.docker.io") -}}
{{- $image = trimPrefix (printf "%s/" $first) $image -}}
{{- $first = "" -}}
{{- end -}}
{{- if or (not $mirror) (hasPrefix (printf "%s/" $mirror) $image) -}}
{{ $image }}
{{- else if not (contains "/" $image) -}}
{{ $mirror }}/library/{{ $image }}
{{- else if or (contains "." $first) (contains ":" $first) (eq $first "localhost") -}}
{{ $mirror }}/{{ trimPrefix (printf "%s/" $first) $image }}
{{- else -}}
{{ $mirror }}/{{ $image }}
{{- end }}
{{- end }}

{{/* A YAML file of the chart, or a failure that says which is missing or broken: (list $ "files/x.yaml"). */}}
{{- define "deckhand.file" -}}
{{- $root := index . 0 -}}
{{- $path := index . 1 -}}
{{- $text := $root.Files.Get $path | required (printf "%s is missing from the chart: run make generate" $path) -}}
{{- with (fromYaml $text).Error }}{{ fail (printf "reading %s: %s" $path .) }}{{ end -}}
{{- $text -}}
{{- end }}
