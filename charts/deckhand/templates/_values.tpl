{{/* Refuses values that the schema cannot refuse in words: Helm prints its patterns. Each message has an example. */}}
{{- define "deckhand.checkValues" -}}
{{- with .Values.imageMirror -}}
{{- if not (regexMatch "^[^/@\\s:]+(:[0-9]+)?(/[^/@\\s:]+)*$" .) -}}
{{- fail (printf "imageMirror is %q: write a registry without https:// and without a slash at the end, for example mirror.example/hub" .) -}}
{{- end -}}
{{- end -}}
{{- range $name, $url := pick (.Values.runner.proxy | default dict) "http" "https" -}}
{{- if and $url (not (regexMatch "^https?://[^@\\s]+$" $url)) -}}
{{- fail (printf "runner.proxy.%s must be a URL without a user and a password: write for example http://proxy.example:3128" $name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.policies.excludeNamespaces -}}
{{- if has . $.Values.watchNamespaces -}}
{{- fail (printf "policies.excludeNamespaces and watchNamespaces both have %s, but no Run can start in a namespace without policies: remove it from one of them" .) -}}
{{- end -}}
{{- end -}}
{{- with (.Values.runDefaults | default dict).ttl -}}
{{- if not (regexMatch "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$" .) -}}
{{- fail (printf "runDefaults.ttl is %q: write hours, minutes or seconds, for example 168h for a week, or \"\" for never" .) -}}
{{- end -}}
{{- end -}}
{{- include "deckhand.checkTraces" .Values.traces -}}
{{- include "deckhand.checkReferences" (list "imagePullSecrets" .Values.imagePullSecrets) -}}
{{- include "deckhand.checkReferences" (list "runner.imagePullSecrets" .Values.runner.imagePullSecrets) -}}
{{- range $field, $resources := pick .Values "resources" "containerResources" -}}
{{- range $kind, $quantities := pick ($resources | default dict) "limits" "requests" -}}
{{- range $name, $quantity := $quantities -}}
{{- include "deckhand.checkQuantity" (list (printf "%s.%s.%s" $field $kind $name) $name $quantity) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "deckhand.checkTraces" -}}
{{- $port := "6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}" -}}
{{- with .endpoint -}}
{{- if regexMatch "/v1/(traces|metrics)/?$" . -}}
{{- fail (printf "traces.endpoint is %q: leave out the path /v1/traces or /v1/metrics, which is added, for example http://collector.monitoring:4318" .) -}}
{{- end -}}
{{- if not (regexMatch (printf "^https?://([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])(:(%s))?(/[^@?#\\s]*)?$" $port) .) -}}
{{- fail (printf "traces.endpoint is %q: write the URL of a collector of OTLP over HTTP, whose port is 4318 in most installations (4317 is gRPC), for example http://collector.monitoring:4318" .) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* References to Secrets: (list "imagePullSecrets" .Values.imagePullSecrets). */}}
{{- define "deckhand.checkReferences" -}}
{{- $at := index . 0 -}}
{{- range $i, $reference := index . 1 -}}
{{- if kindIs "string" $reference -}}
{{- fail (printf "%s has the text %q: write %s: [{name: %s}], or --set '%s[%d].name=%s'" $at $reference $at $reference $at $i $reference) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A quantity of a resource: (list "resources.limits.memory" "memory" "256Mi"). A number is bytes, and no process has so few. */}}
{{- define "deckhand.checkQuantity" -}}
{{- $at := index . 0 -}}
{{- $isCPU := eq (index . 1) "cpu" -}}
{{- $text := toString (index . 2) -}}
{{- if not (regexMatch "^[0-9]+(\\.[0-9]+)?(m|[kMGTPE]|[KMGTPE]i|[eE]\\+?[0-9]+)?$" $text) -}}
{{- fail (printf "%s is %q, which is no quantity: write for example %s" $at $text (ternary "500m" "256Mi" $isCPU)) -}}
{{- end -}}
{{- if and (has (index . 1) (list "memory" "ephemeral-storage")) (regexMatch "^[0-9]{1,6}(\\.[0-9]+)?$" $text) -}}
{{- fail (printf "%s is %s, which is a number of bytes: write %sMi" $at $text $text) -}}
{{- end -}}
{{- end }}
