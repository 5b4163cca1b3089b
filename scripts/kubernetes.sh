#!/usr/bin/env bash
# Builds the kustomizations of deploy/kubernetes and checks what comes out against the schemas of Kubernetes, strictly.
# The schemas come from a package, PyPI's kubernetes-validate. Strimzi's are in no package that we know: its resources are
# checked by `go test ./deploy` only.
set -euo pipefail
cd "$(dirname "$0")/.."
kubernetes=1.37.0
venv=deploy/kubernetes/.venv
[ -e "$venv/$kubernetes" ] || {
  "${PYTHON:-python3}" -m venv "$(realpath -m "$venv")"
  "$venv/bin/python" -m pip install --quiet "kubernetes-validate==$kubernetes"
  touch "$venv/$kubernetes"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/kubernetes"
schemas=$(echo "$venv"/lib/python*/site-packages/kubernetes_validate/kubernetes-json-schema/v$kubernetes-local-strict)
"$venv/bin/python" - "$schemas" "$work/kubernetes" <<'PYTHON'
import json, pathlib, sys

# Their ids say that they lie on kubernetes.io, and so do their references: here they lie next to each other.
for file in pathlib.Path(sys.argv[1]).glob("*.json"):
    schema = json.loads(file.read_text().replace("/api/_definitions.json", "_definitions.json"))
    schema.pop("$id", None)
    pathlib.Path(sys.argv[2], file.name).write_text(json.dumps(schema))
PYTHON
for folder in base gateway; do
  go run sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 build "deploy/kubernetes/$folder" >"$work/$folder.yaml"
  echo "== $folder"
  go run github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0 -strict -summary -exit-on-error \
    -schema-location "$work/kubernetes/{{.ResourceKind}}{{.KindSuffix}}.json" "$work/$folder.yaml"
done
go run sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 build deploy/kubernetes/strimzi >/dev/null
