{{/*
Names are fixed: kinds, webhooks and their names are the cluster's, so there is one operator in it.
*/}}
{{- define "novacron.name" -}}novacron-operator{{- end }}

{{- define "novacron.labels" -}}
app.kubernetes.io/name: novacron
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "novacron.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "novacron.replicas" -}}
{{ .Values.replicaCount | default .Values.replicas }}
{{- end }}

{{/* The families that are on, with commas. */}}
{{- define "novacron.families" -}}
{{- $on := list }}
{{- range $name, $enabled := .Values.families }}
{{- if $enabled }}{{ $on = append $on $name }}{{ end }}
{{- end }}
{{- if not $on }}{{ fail "families: switch at least one on" }}{{ end }}
{{- join "," $on }}
{{- end }}

{{/* All rules of one sort of the families that are on, as generated from the operator's code. */}}
{{- define "novacron.familyRules" -}}
{{- $rules := list }}
{{- $known := (.root.Files.Get "files/rights.yaml" | fromYaml).families }}
{{- range $name := splitList "," (include "novacron.families" .root) }}
{{- $rules = concat $rules (get (get $known $name) $.sort) }}
{{- end }}
{{- toYaml (uniq $rules) }}
{{- end }}

{{- define "novacron.rules" -}}
{{- toYaml (get (.root.Files.Get "files/rights.yaml" | fromYaml) .sort) }}
{{- end }}

{{/* What both the operator and the Job run under: nobody in particular, with no way to become root. */}}
{{- define "novacron.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "novacron.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* A hook that runs before anything is installed or upgraded and leaves nothing behind. */}}
{{- define "novacron.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
