#!/usr/bin/env bash
# Builds the image of Dockerfile with buildah and checks it: the user, the programs, the health checks of docker-compose.yml,
# a file system that is read-only, and that nothing else is in it. Where the registries of the base images cannot be
# reached, it builds the last stage of Dockerfile on an empty base, with programs that this computer compiles, and says
# so. It needs root, and asks Debian for buildah if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "images.sh: run it as root: it mounts images" >&2; exit 1; }
command -v buildah >/dev/null || { apt-get update -qq && apt-get install -qq --yes --no-install-recommends buildah >/dev/null; }
work=$(mktemp -d)
program=
clean() {
  [ -z "$program" ] || { kill "$program" && wait "$program"; } 2>/dev/null || true
  [ -z "${root:-}" ] || umount -l "$root/data" "$root" 2>/dev/null || true
  b rm --all >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean EXIT
b() { buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" "$@"; }
fail() { echo "images.sh: $*" >&2; exit 1; }

# The bases of Dockerfile, with the registry that Docker would add.
pulled() {
  local base
  for base in $(sed -n 's/^FROM \([^ ]*\).*/\1/p' Dockerfile); do
    case $base in */*) ;; *) base=docker.io/library/$base ;; esac
    timeout 60 buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" pull --quiet "$base" >"$work/pull" 2>&1 ||
      { echo "cannot pull $base: $(tail -n 1 "$work/pull" | cut -c1-200)"; return 1; }
  done
}

if why=$(pulled); then
  b build --isolation chroot --quiet --tag flank . >/dev/null
  how="BUILT from Dockerfile and its base images"
else
  echo "$why"
  mkdir -p "$work/context/out/data"
  CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$work/context/out/" ./cmd/ingest ./cmd/trainer ./cmd/monitor ./cmd/standalone
  {
    printf 'FROM scratch AS build\nCOPY out /out\nFROM scratch\nUSER 65532:65532\nENV PATH=/usr/local/bin\n' # as distroless has them
    awk '/^FROM/ {stage = ""; next} {stage = stage $0 "\n"} END {printf "%s", stage}' Dockerfile
  } >"$work/context/Dockerfile"
  b build --isolation chroot --quiet --tag flank "$work/context" >/dev/null
  how="NOT built from its base images, which cannot be pulled here: the last stage of Dockerfile on an empty base"
fi

container=$(b from --pull-never flank)
root=$(b mount "$container")
user=$(b inspect --type image --format '{{.OCIv1.Config.User}}' flank)
case $user in 65532 | 65532:65532 | nonroot) ;; *) fail "the image runs as user \"$user\": want 65532, as docker-compose.yml has it" ;; esac
b inspect --type image --format '{{.OCIv1.Config.Entrypoint}}' flank | grep -qx '\[\]' || fail "the image has an entrypoint: docker-compose.yml names the program in its command"
for shell in bin/sh bin/bash bin/busybox usr/bin/sh usr/bin/bash; do
  [ ! -e "$root/$shell" ] || fail "the image has a shell: /$shell"
done
[ -z "$(find "$root" -xdev -perm /6000)" ] || fail "the image has programs that run as their owner: $(find "$root" -xdev -perm /6000)"
[ "$(stat -c %u:%g "$root/data")" = 65532:65532 ] || fail "/data belongs to $(stat -c %u:%g "$root/data"): want 65532:65532"

# From here on as docker-compose.yml runs it: read-only but /data, without rights.
mount --bind "$root" "$root"
mkdir "$work/data"
chown 65532:65532 "$work/data"
mount --bind "$work/data" "$root/data"
mount -o remount,ro,bind "$root"
inside() { chroot --userspec=65532:65532 "$root" "$@"; }
for p in ingest monitor trainer standalone; do
  inside "/usr/local/bin/$p" --version >/dev/null || fail "$p does not run"
done
port=$((20000 + RANDOM % 9000))
cat >"$work/data/ingest.yaml" <<YAML
machine: acme/spore/bay2/line1/usk25
kafka: {brokers: ["127.0.0.1:1"]}
spool: /data/spool
metrics: "127.0.0.1:$port"
YAML
! inside /usr/local/bin/ingest --health "http://127.0.0.1:$port/livez" 2>/dev/null || fail "the health check is content with a program that does not run"
chroot --userspec=65532:65532 "$root" /usr/local/bin/ingest run --config /data/ingest.yaml >"$work/log" 2>&1 &
program=$!
for i in $(seq 60); do
  ! inside /usr/local/bin/ingest --health "http://127.0.0.1:$port/livez" 2>/dev/null || break
  [ "$i" != 60 ] || fail "the health check fails while ingest runs: $(tail -n 3 "$work/log")"
  sleep 1
done
echo "$how. Checked: user $user, no shell, four programs on a read-only file system, the health check."
