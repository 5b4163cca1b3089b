#!/bin/sh
# archive-rows.sh TRAINER FOLDER prints, as rows of a Markdown table, what the trainer takes to learn from the archive in FOLDER, which
# TestWriteLarge wrote: all of it and parts, and how many of its files it opened.
set -eu
trainer=$(realpath "$1")
cd "$2"
echo '| command | pattern | windows | files opened | most memory resident | processor |'
echo '|---|---|---:|---:|---:|---:|'
windows=0
row() {
	command=$1 pattern=$2
	shift 2
	rm -f opened took
	strace -f -qq --seccomp-bpf -e trace=openat -o opened /usr/bin/time -o took -f '%M %U %S' "$trainer" "$@" --quiet --wear wear.csv --table "features/$pattern/*.parquet" >out 2>log
	read=$(sed -n 's/.*"windows":\([0-9]*\).*/\1/p' log | head -1)
	windows=${read:-$windows}
	files=$(grep -o 'features/[^"]*parquet' opened | sort -u | wc -l)
	awk -v c="$command" -v p="$pattern" -v w="$windows" -v f="$files" '{printf "| %s | `%s` | %s | %d | %d MiB | %d s |\n", c, p, w, f, $1 / 1024, $2 + $3}' took
}
for pattern in '**/machine=acme%2Fmill0/day=2026-09-0[1-2]' '**/day=2026-09-0[1-6]' '**/machine=acme%2Fmill2/day=2026-09-*' '**/day=2026-09-[01]?' '**'; do
	row fit "$pattern" fit --config train.yaml --model rows.flank --fresh
done
row 'labels check' '**/day=2026-09-0[1-8]' labels check --config train.yaml
row evaluate '**/day=2026-09-0[1-8]' evaluate --model rows.flank
