#!/usr/bin/env bash
# install.sh VERSION... fetches the jars of Apache Kafka with Maven, once, into
# ${FLANK_KAFKA_HOME:-~/.cache/flank}/kafka-VERSION/lib. As root it installs missing Java
# and Maven from Debian's packages. It also makes an archive of the classes that a broker
# loads, with which one starts in half the processor time: broker.sh takes it if it is there.
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

# archive VERSION: a broker that starts, serves and ends writes the classes that it loaded.
archive() {
  local dir="$home/kafka-$1" port=$((15000 + RANDOM % 14000)) temp broker
  [ -e "$dir/classes.jsa" ] && return
  temp="$(mktemp -d)"
  FLANK_KAFKA_ARCHIVE="$dir/classes.jsa.$$" "$here/broker.sh" "$1" "$temp" "$port" "$((port + 1))" >"$temp/log" 2>&1 &
  broker=$!
  for _ in $(seq 600); do
    (echo >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    kill -0 "$broker" 2>/dev/null || break
    sleep 0.1
  done
  kill "$broker" 2>/dev/null || true
  wait "$broker" || true
  if [ -s "$dir/classes.jsa.$$" ]; then
    mv -f "$dir/classes.jsa.$$" "$dir/classes.jsa"
  else
    echo "install.sh: made no archive of classes for Kafka $1: brokers start more slowly" >&2
  fi
  rm -rf "$temp"
}

for version in "$@"; do
  dir="$home/kafka-$version"
  if [ -d "$dir/lib" ]; then
    archive "$version"
    continue
  fi
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
  archive "$version"
done
