#!/usr/bin/env bash
# Runs golangci-lint in the version that internal/tools/golangci/go.mod pins. The first
# run builds it, which takes minutes; `scripts/lint.sh --build` does only that. Without packages it lints all.
set -euo pipefail
cd "$(dirname "$0")/.."

package=github.com/golangci/golangci-lint/v2/cmd/golangci-lint
version=$(go -C internal/tools/golangci list -m -f '{{.Version}}' github.com/golangci/golangci-lint/v2)
linter=$PWD/.cache/bin/golangci-lint-$version
if [[ ! -x $linter ]]; then
	mkdir -p .cache/bin
	# Not -race or other flags of the caller: this is a tool, not the project.
	GOFLAGS=-buildvcs=false CGO_ENABLED=0 go -C internal/tools/golangci build -o "$linter.new" "$package"
	mv "$linter.new" "$linter"
fi
[[ ${1:-} == --build ]] && exit 0
(($#)) || set -- ./...
# The cache is this tree's own, so a linter of another tree may run at the same time.
GOLANGCI_LINT_CACHE=$PWD/.cache/golangci-lint exec "$linter" run --allow-parallel-runners "$@"
