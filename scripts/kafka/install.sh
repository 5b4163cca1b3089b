#!/usr/bin/env bash
# install.sh VERSION... fetches the jars of Apache Kafka with Maven, once, into
# ${FLANK_KAFKA_HOME:-~/.cache/flank}/kafka-VERSION/lib. As root it installs missing Java
# and Maven from Debian's packages.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
home="${FLANK_KAFKA_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/flank}"

need() { # program, package
  command -v "$1" >/dev/null && return
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "install.sh: $1 is missing: install Java 17 and Maven" >&2
    exit 1
  fi
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y "$2" >/dev/null
}
need java openjdk-17-jre-headless
need mvn maven

for version in "$@"; do
  dir="$home/kafka-$version"
  [ -d "$dir/lib" ] && continue
  mkdir -p "$home"
  temp="$(mktemp -d "$home/install.XXXXXX")"
  trap 'rm -rf "$temp"' EXIT
  cp "$here/pom.xml" "$temp"
  for try in 1 2 3; do
    mvn -q -B -ntp -f "$temp/pom.xml" -Dkafka.version="$version" dependency:copy-dependencies \
      -DincludeScope=runtime -DoutputDirectory="$temp/lib" && break
    [ "$try" = 3 ] && exit 1
    sleep 5
  done
  mkdir -p "$dir"
  mv "$temp/lib" "$dir/lib"
  rm -rf "$temp"
done
