{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* The start of all names. */}}
{{- define "ringcap.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that select pods. Called with (dict "root" $ "component" "agent"). */}}
{{- define "ringcap.selectorLabels" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of everything. Called as the one above. */}}
{{- define "ringcap.labels" -}}
{{ include "ringcap.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/*
An image's repository with its registry: its own where it names one, as Docker tells (a dot, a colon, localhost), else that of all.
Called as the one below. The schema says nothing of what is below global, which is also for other charts.
*/}}
{{- define "ringcap.repository" -}}
{{- $registry := dig "image" "registry" "ringcap.local" (default dict .root.Values.global) -}}
{{- if regexMatch "^([^/]*[.:][^/]*|localhost)/" .image.repository -}}
{{ .image.repository }}
{{- else if regexMatch "^[a-zA-Z0-9][a-zA-Z0-9.:/_-]*[a-zA-Z0-9]$" $registry -}}
{{ $registry }}/{{ .image.repository }}
{{- else -}}
{{ fail (printf "global.image.registry is %q: write HOST, HOST:PORT or HOST/PATH, without a slash at the end" $registry) }}
{{- end -}}
{{- end -}}

{{/* An image's reference. Called with (dict "root" $ "image" .Values.agent.image). */}}
{{- define "ringcap.image" -}}
{{- if .image.digest -}}
{{ include "ringcap.repository" . }}@{{ .image.digest }}
{{- else -}}
{{ include "ringcap.repository" . }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end -}}
{{- end -}}

{{/* Environment by which client-go finds the API server, or nothing. */}}
{{- define "ringcap.apiServerEnv" -}}
{{- if .Values.apiServer.host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ .Values.apiServer.host | quote }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ .Values.apiServer.port | quote }}
{{- end }}
{{- end -}}
