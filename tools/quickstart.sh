#!/usr/bin/env bash
# Trains examples/sft on SmolLM2 and shows what changed: held-out loss and answers before and after.
set -euo pipefail
cd "$(dirname "$0")/.."
model=${RETRO_CACHE:-$HOME/.cache/retrograd}/smollm2-135m-q4_1.gguf
run=examples/sft/run.toml
adapter=examples/sft/out/adapter.gguf
retrograd=build/release/retrograd
rm -rf examples/sft/out # of an earlier quickstart
mkdir examples/sft/out
show() {
  printf '\n$ %s\n' "retrograd $*"
  "$retrograd" "$@"
}

show train $run --model "$model"
show bench $run --model "$model" --adapter $adapter
printf '%s\n' "What do bees make?" "How do I keep bread fresh?" "What is 7 plus 5?" /exit |
  show chat $run --model "$model" --adapter $adapter --compare --temp 0 --max-new-tokens 48
printf '\nThe adapter is %s; llama.cpp loads it with --lora. Next: README.md\n' "$adapter"
