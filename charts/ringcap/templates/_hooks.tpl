{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* A hook's annotations. Called with (dict "hook" "test" "weight" -1 "delete" "hook-succeeded"); weight is optional. */}}
{{- define "ringcap.hook" -}}
helm.sh/hook: {{ .hook }}
{{- with .weight }}
helm.sh/hook-weight: {{ . | quote }}
{{- end }}
helm.sh/hook-delete-policy: before-hook-creation,{{ .delete }}
{{- end -}}

{{/*
The service account of a hook's Job, and what it may do in the cluster. Called with "root", "component", "hook" (its annotations) and
"rule", about objects of ringcap's.
*/}}
{{- define "ringcap.hookAccount" -}}
{{- $name := printf "%s-%s" (include "ringcap.fullname" .root) .component }}
{{- $labels := include "ringcap.labels" . }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- .hook | nindent 4 }}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- .hook | nindent 4 }}
rules:
  - apiGroups: [ringcap.io]
    {{- toYaml .rule | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- $labels | nindent 4 }}
  annotations:
    {{- .hook | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ $name }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/*
A Job that runs the operator's program once, with the account above. Called with "root", "component", "hook" (its annotations), "args" and
"timeoutSeconds", which --timeout is added from.
*/}}
{{- define "ringcap.hookJob" -}}
{{- $name := printf "%s-%s" (include "ringcap.fullname" .root) .component }}
{{- $operator := .root.Values.operator }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "ringcap.labels" . | nindent 4 }}
  annotations:
    {{- .hook | nindent 4 }}
    # Helm prints the Job's log to the terminal, so that its user sees what failed.
    helm.sh/hook-output-log-policy: {{ .log | default "hook-failed" }}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: {{ add .timeoutSeconds 60 }}
  template:
    metadata:
      labels:
        {{- include "ringcap.selectorLabels" . | nindent 8 }}
    spec:
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      dnsPolicy: Default
      restartPolicy: Never
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: {{ .component }}
          image: {{ include "ringcap.image" (dict "root" .root "image" $operator.image) }}
          imagePullPolicy: {{ $operator.image.pullPolicy }}
          command:
            - /usr/bin/operator
          args:
            {{- toYaml .args | nindent 12 }}
            - --timeout={{ .timeoutSeconds }}s
          {{- with include "ringcap.apiServerEnv" .root }}
          env:
            {{- . | nindent 12 }}
          {{- end }}
          terminationMessagePolicy: FallbackToLogsOnError
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          resources:
            {{- toYaml $operator.resources | nindent 12 }}
      {{- with $operator.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $operator.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}
