#!/usr/bin/env bash
# Builds a release of the commit that is checked out into a folder, which must be new or empty: archives and
# Debian packages, the list of what is in them, sums, and a signature if RELEASE_KEY names an OpenSSH key.
# Equal commits and equal versions of Go and dpkg make equal bytes. RELEASE_ARCHES names processors ("amd64") for a
# part of a release to try: Debian packages alone, packed fast.
#
#   scripts/release.sh FOLDER [VERSION]
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$(dirname "$0")/.."
out=${1:?usage: scripts/release.sh FOLDER [VERSION]}
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -z "$(ls -A "$out")" ] || { echo "release: $out is not empty: name a new folder" >&2; exit 1; }
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct HEAD)
export SOURCE_DATE_EPOCH
version=${2:-$(git describe --tags --match 'v[0-9]*' 2>/dev/null || echo "v0.0.0-$(date -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S)-${commit:0:12}")}
version=${version#v}
debian=${version/-rc/~rc} # before the release that it leads to
debian=${debian//-/+}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/src"
git archive "$commit" | tar -x -C "$work/src" # what is committed, whatever lies around

build() { # GOOS GOARCH FOLDER PROGRAM...
  local os=$1 arch=$2 to=$3
  shift 3
  (cd "$work/src" && CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOAMD64=v1 GOARM64=v8.0 GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X github.com/flank-tcm/flank/cmd/internal/cli.version=v$version -X github.com/flank-tcm/flank/cmd/internal/cli.commit=$commit" \
    -o "$to/" "${@/#/./cmd/}")
}
pack() { # NAME: the folder $work/NAME as NAME.tar.gz
  tar -C "$work" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -c "$1" | gzip -6n >"$out/$1.tar.gz"
}

programs=(ingest monitor standalone trainer)
part=${RELEASE_ARCHES:-} level=6
[ -z "$part" ] || level=1
read -ra arches <<<"${part:-amd64 arm64}"
for arch in "${arches[@]}"; do
  build linux "$arch" "$work/bin/$arch" "${programs[@]}"
done
[ -n "$part" ] || build windows amd64 "$work/bin/windows" ingest
# Pages and scripts are the same everywhere: a program of this computer writes them.
host=$(go env GOHOSTARCH)
here=$work/bin/$host
[ -d "$here" ] || { here=$work/here; build linux "$host" "$here" "${programs[@]}"; }
mkdir -p "$work/share/man/man1" "$work/share/bash-completion/completions" "$work/share/fish/vendor_completions.d" "$work/share/zsh/vendor-completions"
for p in "${programs[@]}"; do
  "$here/$p" --man | gzip -6n >"$work/share/man/man1/$p.1.gz"
  "$here/$p" --completion bash >"$work/share/bash-completion/completions/$p"
  "$here/$p" --completion fish >"$work/share/fish/vendor_completions.d/$p.fish"
  "$here/$p" --completion zsh >"$work/share/zsh/vendor-completions/_$p"
done
(cd "$work/src" && go run ./scripts/sbom --version "$version" --commit "$commit" --time "$SOURCE_DATE_EPOCH" --sbom "$out/flank_$version.cdx.json" --licences "$work/THIRD-PARTY-LICENSES.txt" \
  "$work"/bin/*/*)

# What a plant reads: documents without the tables behind figures, contracts, and what is deployed.
mkdir -p "$work/read"
cp -r "$work/src/deploy/prometheus" "$work/src/deploy/grafana" "$work/src/deploy/kafka" "$work/src/deploy/kubernetes" "$work/src/examples" "$work/src/docs" "$work/src/schemas" "$work/read/"
find "$work/read" \( -name '*_test.go' -o -path '*/schemas/*.go' -o -path '*/docs/*.csv' \) -delete
find "$work/read" -type d -empty -delete

for arch in "${arches[@]}"; do
  name=flank_${version}_linux_$arch
  mkdir "$work/$name"
  cp -r "$work/bin/$arch"/* "$work/share" "$work/src/deploy/systemd" "$work/read"/* "$work/src/LICENSE" "$work/src/CHANGELOG.md" "$work/THIRD-PARTY-LICENSES.txt" "$work/$name/"
  [ -n "$part" ] || pack "$name"
  deb=$work/deb-$arch
  mkdir -p "$deb/DEBIAN" "$deb/usr/bin" "$deb/lib/systemd/system" "$deb/usr/share/doc/flank"
  cp "$work/bin/$arch"/* "$deb/usr/bin/"
  cp -r "$work/share"/* "$deb/usr/share/"
  cp "$work/src/deploy/systemd"/*.{service,timer} "$deb/lib/systemd/system/"
  cp -r "$work/read"/* "$deb/usr/share/doc/flank/"
  cat "$work/src/LICENSE" "$work/THIRD-PARTY-LICENSES.txt" >"$deb/usr/share/doc/flank/copyright"
  gzip -6n <"$work/src/CHANGELOG.md" >"$deb/usr/share/doc/flank/changelog.gz"
  cp "$work/src/deploy/debian"/p* "$deb/DEBIAN/"
  cat >"$deb/DEBIAN/control" <<CONTROL
Package: flank
Version: $debian
Architecture: $arch
Maintainer: Flank developers <flank@localhost>
Depends: passwd
Recommends: systemd
Section: science
Priority: optional
Installed-Size: $(du -sk --apparent-size "$deb/usr" | cut -f1)
Description: tool-condition monitoring over Apache Kafka
 Gateways that lose no window, monitors that raise one alarm for one worn
 tool, and a trainer. It is not a safety function.
CONTROL
  dpkg-deb --root-owner-group -Zgzip "-z$level" --build "$deb" "$out/flank_${debian}_$arch.deb" >/dev/null
done
if [ -d "$work/bin/windows" ]; then
  name=flank_${version}_windows_amd64
  mkdir "$work/$name"
  cp -r "$work/bin/windows"/* "$work/src/LICENSE" "$work/THIRD-PARTY-LICENSES.txt" "$work/$name/"
  pack "$name"
fi

(cd "$out" && sha256sum -- flank_* >SHA256SUMS)
if [ -n "${RELEASE_KEY:-}" ]; then
  ssh-keygen -q -Y sign -f "$RELEASE_KEY" -n flank-release "$out/SHA256SUMS"
else
  echo "release: NOT signed: RELEASE_KEY names no key" >&2
fi
cat "$out/SHA256SUMS"
