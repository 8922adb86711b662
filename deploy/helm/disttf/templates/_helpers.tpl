{{/* The name of the run, with which the names of its pods begin. */}}
{{- define "disttf.name" -}}
{{- $name := .Values.nameOverride | default .Release.Name -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "the release's name: %q must consist of lower-case letters, digits and hyphens, begin with a letter and not end with a hyphen; nameOverride replaces it" $name) -}}
{{- end -}}
{{- $longest := printf "%s-evaluator-0" $name -}}
{{- $worker := printf "%s-worker-%d" $name (sub (int .Values.workers) 1) -}}
{{- if or (not .Values.evaluator) (gt (len $worker) (len $longest)) -}}
{{- $longest = $worker -}}
{{- end -}}
{{- if gt (len $longest) 63 -}}
{{- fail (printf "the release's name: %q is too long: the host name %q has %d characters, at most 63 are allowed" $name $longest (len $longest)) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* The labels of every object. */}}
{{- define "disttf.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* A value in the form of a flag's argument. Helm reads numbers in files as floats; lists are joined with commas. */}}
{{- define "disttf.text" -}}
{{- if kindIs "slice" . -}}
{{- $parts := list -}}
{{- range . -}}
{{- $parts = append $parts (include "disttf.text" .) -}}
{{- end -}}
{{- join "," $parts -}}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- printf "%.0f" . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{/* dict root job count -> the addresses of a job's tasks, by the names of the headless Service. */}}
{{- define "disttf.hosts" -}}
{{- $name := include "disttf.name" .root -}}
{{- $hosts := list -}}
{{- range $index := until (int .count) -}}
{{- $hosts = append $hosts (printf "%s-%s-%d.%s:%d" $name $.job $index $name (int $.root.Values.port)) -}}
{{- end -}}
{{- join "," $hosts -}}
{{- end -}}

{{/* dict root job -> the program's arguments, a list as JSON. */}}
{{- define "disttf.arguments" -}}
{{- $values := .root.Values -}}
{{- $words := list .job "--task_index=$(JOB_COMPLETION_INDEX)" -}}
{{- $words = append $words (printf "--ps_hosts=%s" (include "disttf.hosts" (dict "root" .root "job" "ps" "count" $values.ps))) -}}
{{- if gt (int $values.workers) 0 -}}
{{- $words = append $words (printf "--worker_hosts=%s" (include "disttf.hosts" (dict "root" .root "job" "worker" "count" $values.workers))) -}}
{{- end -}}
{{- if $values.chief -}}
{{- $words = append $words (printf "--chief_host=%s" (include "disttf.hosts" (dict "root" .root "job" "chief" "count" 1))) -}}
{{- end -}}
{{- range $flag, $value := $values.flags -}}
{{- $words = append $words (printf "--%s=%s" $flag (include "disttf.text" $value | replace "$" "$$")) -}}
{{- end -}}
{{- $named := "" -}}
{{- range $values.env -}}
{{- if eq .name "DISTTF_SECRET" -}}
{{- $named = .name -}}
{{- end -}}
{{- end -}}
{{- if $values.secret -}}
{{- range $other := list "secret_file" "task_cert" "insecure" -}}
{{- if index $values.flags $other -}}
{{- fail (printf "secret: %q is not allowed with flags.%s; set only one of them" $values.secret $other) -}}
{{- end -}}
{{- end -}}
{{- $words = append $words "--secret_file=/run/secrets/disttf/secret" -}}
{{- else if not (or $values.flags.secret_file $values.flags.task_cert $values.flags.insecure $values.secrets $named) -}}
{{- fail "secret: missing; the pods are on several machines, and without a secret any program that reaches a port can act as a task. Set the name of a Secret with the key DISTTF_SECRET, or flags.insecure=true" -}}
{{- end -}}
{{- if $values.flags.task_cert -}}
{{- if not (and $values.flags.task_key $values.flags.task_ca) -}}
{{- fail (printf "flags.task_cert: %q needs flags.task_key and flags.task_ca" $values.flags.task_cert) -}}
{{- end -}}
{{- end -}}
{{- if $values.metrics.enabled -}}
{{- $words = append $words (printf "--metrics_port=%d" (int $values.metrics.port)) -}}
{{- $words = append $words "--metrics_host=all" -}}
{{- end -}}
{{- toJson $words -}}
{{- end -}}

{{/* The volume that contains flags.train_dir, as JSON. */}}
{{- define "disttf.servedVolume" -}}
{{- $directory := toString (.Values.flags.train_dir | default "") -}}
{{- $found := dict -}}
{{- range .Values.volumes -}}
{{- if and (not .readOnly) (hasPrefix (printf "%s/" .path) (printf "%s/" $directory)) -}}
{{- $found = merge (dict "readOnly" true) . -}}
{{- end -}}
{{- end -}}
{{- if not $found -}}
{{- fail (printf "serve.replicas: %d wants flags.train_dir in a writable directory of volumes, which the serving pods share with the chief" (int .Values.serve.replicas)) -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* port -> the annotations for metric scrapers. */}}
{{- define "disttf.scrapeAnnotations" -}}
prometheus.io/scrape: "true"
prometheus.io/port: {{ . | quote }}
prometheus.io/path: /metrics
{{- end -}}

{{/* dict root app port gang -> the metadata of a pod. gang: the pod is part of the gang. */}}
{{- define "disttf.podMetadata" -}}
{{- $gang := and .gang .root.Values.volcano.enabled -}}
labels:
  app: {{ .app }}
  {{- include "disttf.labels" .root | nindent 2 }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if or .root.Values.metrics.enabled .root.Values.podAnnotations $gang }}
annotations:
  {{- if $gang }}
  scheduling.k8s.io/group-name: {{ .app }}
  {{- end }}
  {{- if .root.Values.metrics.enabled }}
  {{- include "disttf.scrapeAnnotations" (int .port) | nindent 2 }}
  {{- end }}
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The image of disttf. */}}
{{- define "disttf.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default (.Chart.AppVersion | replace "+" "-")) -}}
{{- end -}}

{{/* dict root app gang resources nodeSelector volumes secret ports arguments probes program -> the common part of each
     pod's spec. program: dict image path isBrought resources, of a user's program; empty: none. */}}
{{- define "disttf.pod" -}}
{{- $values := .root.Values -}}
{{- $program := .program | default dict -}}
automountServiceAccountToken: false
{{- with $values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with $values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with ternary "volcano" $values.schedulerName (and .gang $values.volcano.enabled) }}
schedulerName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $values.spread }}
topologySpreadConstraints:
  - topologyKey: {{ $values.spread }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        app: {{ .app }}
{{- end }}
{{- /* Like render kubernetes: Secrets and claims get the group of the image's user; writing to a hostPath needs root. */ -}}
{{- $security := deepCopy $values.podSecurityContext -}}
{{- if or .volumes .secret -}}
{{- $security = merge $security (dict "fsGroup" 65532 "fsGroupChangePolicy" "OnRootMismatch") -}}
{{- range .volumes -}}
{{- if and .hostPath (not .readOnly) (not (hasKey $security "runAsUser")) -}}
{{- $_ := set $security "runAsUser" 0 -}}
{{- end -}}
{{- end -}}
{{- end }}
{{- with $security }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if or .volumes .secret $program.isBrought }}
volumes:
  {{- range $number, $volume := .volumes }}
  - name: volume-{{ $number }}
    {{- if $volume.claim }}
    persistentVolumeClaim:
      claimName: {{ $volume.claim }}
    {{- else }}
    hostPath:
      path: {{ $volume.hostPath | quote }}
    {{- end }}
  {{- end }}
  {{- with .secret }}
  - name: secret
    secret:
      secretName: {{ . }}
      # The mode is 0440 (decimal 288): the group is fsGroup's. disttf rejects a file that others
      # may read.
      defaultMode: 288
      items:
        - key: DISTTF_SECRET
          path: secret
  {{- end }}
  {{- if $program.isBrought }}
  - name: disttf-program
    emptyDir: {}
  {{- end }}
{{- end }}
{{- if $program.isBrought }}
# Brings disttf into the image of the program.
initContainers:
  - name: bring-disttf
    image: {{ include "disttf.image" .root | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args: [cp, /disttf, /opt/disttf/]
    {{- with $program.resources }}
    resources: {{ toJson . }}
    {{- end }}
    {{- with $values.securityContext }}
    securityContext:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    volumeMounts:
      - name: disttf-program
        mountPath: /opt/disttf
{{- end }}
containers:
  - name: disttf
    image: {{ $program.image | default (include "disttf.image" .root) | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    {{- with $program.path }}
    command: [{{ . | toJson }}]
    {{- end }}
    args:
      {{- range .arguments }}
      - {{ . | toJson }}
      {{- end }}
    ports:
      {{- toYaml .ports | nindent 6 }}
    {{- with $values.env }}
    env:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $values.secrets }}
    envFrom:
      {{- range . }}
      - secretRef:
          name: {{ . }}
      {{- end }}
    {{- end }}
    {{- with .resources }}
    resources: {{ toJson . }}
    {{- end }}
    {{- with $values.securityContext }}
    securityContext:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .probes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if or .volumes .secret $program.isBrought }}
    volumeMounts:
      {{- range $number, $volume := .volumes }}
      - name: volume-{{ $number }}
        mountPath: {{ $volume.path | quote }}
        {{- if $volume.readOnly }}
        readOnly: true
        {{- end }}
      {{- end }}
      {{- if .secret }}
      - name: secret
        mountPath: /run/secrets/disttf
        readOnly: true
      {{- end }}
      {{- if $program.isBrought }}
      - name: disttf-program
        mountPath: /opt/disttf
        readOnly: true
      {{- end }}
    {{- end }}
{{- end -}}
