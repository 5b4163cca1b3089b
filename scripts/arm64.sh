#!/usr/bin/env bash
# Runs the programs, built for 64-bit ARM, under qemu-user of Debian: standalone as the broker, a gateway
# with a simulated drill, and a monitor without a model, which extracts. Each must do its work, and end when it is told to.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
work=$(mktemp -d)
pids=()
end() {
  local code=$?
  [ "${#pids[@]}" = 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait
  [ "$code" = 0 ] || tail -n 20 "$work"/*.log >&2 || true
  rm -rf "$work"
  exit "$code"
}
trap end EXIT
CGO_ENABLED=0 GOARCH=arm64 "$go" build -o "$work/" ./cmd/ingest ./cmd/monitor ./cmd/standalone ./cmd/trainer
run() { qemu-aarch64 "$work/$1" "${@:2}"; }
until_said() { # FILE TEXT
  for _ in $(seq 600); do
    grep -q "$2" "$1" 2>/dev/null && return
    sleep 0.2
  done
  echo "arm64.sh: no $2 in $1:" >&2
  cat "$1" >&2
  return 1
}
for p in ingest monitor standalone trainer; do run "$p" --version | grep -q 'linux/arm64'; done
port=$((15000 + RANDOM % 14000))
cat >"$work/ingest.yaml" <<YAML
machine: arm/site/area/line/drill
kafka: {brokers: ["127.0.0.1:$port"]}
spool: spool
metrics: "127.0.0.1:$((port + 1))"
source: {kind: simulate, speed: 1, tool_life: 30s}
YAML
cat >"$work/monitor.yaml" <<YAML
kafka: {brokers: ["127.0.0.1:$port"]}
page: "127.0.0.1:$((port + 2))"
YAML
qemu-aarch64 "$work/standalone" --broker-only --broker "127.0.0.1:$port" --data-dir "$work/broker" >"$work/broker.log" 2>&1 &
pids+=($!)
until_said "$work/broker.log" "127.0.0.1:$port"
qemu-aarch64 "$work/monitor" run --config "$work/monitor.yaml" --insecure-models --wait 60s >"$work/monitor.log" 2>&1 &
monitor=$!
pids+=("$monitor")
until_said "$work/monitor.log" monitoring
qemu-aarch64 "$work/ingest" run --config "$work/ingest.yaml" >"$work/ingest.log" 2>&1 &
ingest=$!
pids+=("$ingest")
for _ in $(seq 600); do
  run monitor --health "http://127.0.0.1:$((port + 2))/readyz" 2>/dev/null && run ingest --health "http://127.0.0.1:$((port + 1))/readyz" 2>/dev/null && break
  sleep 0.5
done
extracted() { # of the windows
  exec 3<>"/dev/tcp/127.0.0.1/$((port + 2))"
  printf 'GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
  grep -Eq '^tcm_features_published_total [1-9]' <&3
}
for _ in $(seq 600); do
  (extracted) 2>/dev/null && break
  sleep 0.2
done
(extracted) || { echo "arm64.sh: the monitor has extracted no window" >&2; exit 1; }
kill "$ingest"
wait "$ingest"
grep -q 'windows cut' "$work/ingest.log" || { cat "$work/ingest.log"; exit 1; }
kill "$monitor"
wait "$monitor"
grep -q ' 0 messages set aside' "$work/monitor.log" || { cat "$work/monitor.log"; exit 1; }
tail -qn 1 "$work/ingest.log" "$work/monitor.log"
