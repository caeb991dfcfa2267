#!/usr/bin/env bash
# Runs the tests of device/cuda on this host's GPU, and prints the rates of the ways from one rank's memory of it to
# another's. It needs NVIDIA's driver. On a host without Go, give a test binary that `go test -c ./device/cuda` made.
#
#	scripts/gpu.sh [TEST BINARY]
set -euo pipefail
cd "$(dirname "$0")/.."

command -v nvidia-smi >/dev/null || { echo "gpu.sh: this host has no driver of NVIDIA; on Debian install nvidia-driver and libcuda1" >&2; exit 1; }
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
if (($#)); then
	test=$(realpath "$1")
else
	test=$(mktemp)
	trap 'rm -f "$test"' EXIT
	CGO_ENABLED=0 go test -c -o "$test" ./device/cuda
fi
cd device/cuda
export GOPGAS_GPU=1
"$test" -test.v -test.run GPU -test.timeout 10m
"$test" -test.run '^$' -test.bench GPU -test.benchtime 1x -test.timeout 10m
