{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{/*
The container that loads the module. Takes a dict with "root", "name", and "built" where a former container may have built one.
No other container may load modules. It also succeeds if it cannot load one: the agent then captures with eBPF and reports why.
*/}}
{{- define "ringcap.loader" -}}
{{- $module := .root.Values.agent.module -}}
- name: {{ .name }}
  image: {{ include "ringcap.image" (dict "root" .root "image" .root.Values.agent.image) }}
  imagePullPolicy: {{ .root.Values.agent.image.pullPolicy }}
  command:
    - /usr/bin/node-agent
  args:
    - load-module
    - --mode={{ $module.mode }}
    - --modules-dir=/modules
    - --run-dir=/run/ringcap
    - --sys=/host/sys
    - --upgrade={{ $module.upgrade.policy }}
    - --kubelet-dir=/kubelet
    {{- if .built }}
    - --built-dir=/built
    {{- end }}
    {{- if $module.signing.secretName }}
    - --signing-key=/signing-key
    {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      add: [NET_ADMIN{{ if eq $module.mode "Load" }}, SYS_MODULE{{ end }}]
  resources:
    {{- toYaml .root.Values.agent.resources | nindent 4 }}
  volumeMounts:
    - name: run
      mountPath: /run/ringcap
    # A container's own /sys has no securityfs, which shows whether the kernel is locked down.
    - name: sys
      mountPath: /host/sys
      readOnly: true
    # To find the pods that have queues of the module to replace.
    - name: pod-resources
      mountPath: /kubelet/pod-resources
      readOnly: true
    {{- if .built }}
    - name: built
      mountPath: /built
      readOnly: true
    {{- end }}
    {{- if $module.signing.secretName }}
    - name: signing-key
      mountPath: /signing-key
      readOnly: true
    {{- end }}
{{- end }}
