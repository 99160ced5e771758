{{/* The name of what this release installs: deckhand, or prod-deckhand. */}}
{{- define "deckhand.name" -}}
{{- $name := contains "deckhand" .Release.Name | ternary .Release.Name (printf "%s-deckhand" .Release.Name) -}}
{{- trunc 48 $name | trimSuffix "-" -}}
{{- end }}

{{/* The name in this release of an object that its file calls deckhand-x: (list $ "deckhand-x"). */}}
{{- define "deckhand.inRelease" -}}
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

{{/* Refuses an installation beside another release whose namespaces overlap: two operators would run the same Runs. The bindings of its policies say which those are. */}}
{{- define "deckhand.refuseOverlap" -}}
{{- range (lookup "admissionregistration.k8s.io/v1" "ValidatingAdmissionPolicyBinding" "" "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $release := get $labels "app.kubernetes.io/instance" -}}
{{- if and (eq (get $labels "app.kubernetes.io/name") "deckhand") (ne $release $.Release.Name) -}}
{{- $watched := list -}}
{{- range (((.spec.matchResources).namespaceSelector).matchExpressions) }}{{ if eq .operator "In" }}{{ $watched = concat $watched .values }}{{ end }}{{ end -}}
{{- $shared := $.Values.watchNamespaces | default $watched -}}
{{- if and $watched $.Values.watchNamespaces -}}
{{- $shared = list -}}
{{- range $watched }}{{ if has . $.Values.watchNamespaces }}{{ $shared = append $shared . }}{{ end }}{{ end -}}
{{- end -}}
{{- if or $shared (not $watched) -}}
{{- $overlap := empty $shared | ternary "all namespaces" (printf "the namespaces %s" (join ", " $shared)) -}}
{{- fail (printf "release %s already runs the Runs of %s. Set watchNamespaces of both releases to different namespaces, or uninstall one of them" $release $overlap) -}}
{{- end -}}
{{- end -}}
{{- end -}}
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
{{- $text := $root.Files.Get $path | required (printf "%s is missing from the chart" $path) -}}
{{- with (fromYaml $text).Error }}{{ fail (printf "reading %s: %s" $path .) }}{{ end -}}
{{- $text -}}
{{- end }}
