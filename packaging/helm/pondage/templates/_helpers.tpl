{{- define "pondage.labels" -}}
app.kubernetes.io/name: pondage
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
