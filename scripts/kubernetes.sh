#!/usr/bin/env bash
# Builds the kustomizations of deploy/kubernetes and checks what comes out against the schemas of Kubernetes, strictly, and
# of KEDA. The schemas come from packages: PyPI's kubernetes-validate and KEDA's Go module. Strimzi's are in no package
# that we know: its resources are checked by `go test ./deploy` only.
set -euo pipefail
cd "$(dirname "$0")/.."
kubernetes=1.37.0 keda=v2.21.0
venv=deploy/kubernetes/.venv
[ -e "$venv/$kubernetes" ] || {
  "${PYTHON:-python3}" -m venv "$venv"
  "$venv/bin/pip" install --quiet "kubernetes-validate==$kubernetes"
  touch "$venv/$kubernetes"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
crds=$(cd "$work" && go mod download -json "github.com/kedacore/keda/v2@$keda" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')/config/crd/bases
mkdir "$work/keda" "$work/kubernetes"
schemas=$(echo "$venv"/lib/python*/site-packages/kubernetes_validate/kubernetes-json-schema/v$kubernetes-local-strict)
"$venv/bin/python" - "$crds" "$work/keda" "$schemas" "$work/kubernetes" <<'PYTHON'
import json, pathlib, sys
import yaml

def strict(s):  # as the server drops or refuses keys that no one knows
    if isinstance(s, dict):
        if "properties" in s and not s.get("x-kubernetes-preserve-unknown-fields"):
            s.setdefault("additionalProperties", False)
        for v in s.values():
            strict(v)
    elif isinstance(s, list):
        for v in s:
            strict(v)
    return s

for name in "scaledobjects", "triggerauthentications":
    crd = yaml.safe_load(pathlib.Path(sys.argv[1], f"keda.sh_{name}.yaml").read_text())["spec"]
    for version in crd["versions"]:
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}
        pathlib.Path(sys.argv[2], f"{crd['names']['kind'].lower()}_{version['name']}.json").write_text(json.dumps(schema))

# Their ids say that they lie on kubernetes.io, and so do their references: here they lie next to each other.
for file in pathlib.Path(sys.argv[3]).glob("*.json"):
    schema = json.loads(file.read_text().replace("/api/_definitions.json", "_definitions.json"))
    schema.pop("$id", None)
    pathlib.Path(sys.argv[4], file.name).write_text(json.dumps(schema))
PYTHON
for folder in base gateway; do
  go run sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 build "deploy/kubernetes/$folder" >"$work/$folder.yaml"
  echo "== $folder"
  go run github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0 -strict -summary -exit-on-error \
    -schema-location "$work/kubernetes/{{.ResourceKind}}{{.KindSuffix}}.json" -schema-location "$work/keda/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json" "$work/$folder.yaml"
done
go run sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 build deploy/kubernetes/strimzi >/dev/null
