#!/usr/bin/env bash
# fuzz_one.sh NAME_fuzz SECONDS: one fuzzer from its seed corpus; a finding stays in build/fuzz/ and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1 seconds=$2
grown=build/fuzz/corpus/${name%_fuzz}
mkdir -p "$grown"
build/fuzz/"$name" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
  -artifact_prefix=build/fuzz/"$name"- "$grown" tests/fuzz/corpus/"${name%_fuzz}" >build/fuzz/"$name".log 2>&1 ||
  { tail -40 build/fuzz/"$name".log >&2; exit 1; }
sed -n 's/^stat::number_of_executed_units: */'"$name"': executions /p' build/fuzz/"$name".log
