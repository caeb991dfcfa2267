#!/usr/bin/env bash
# Repeats tests under the race detector, and the examples under grun, until the
# time is over or one of them fails.
#
#	scripts/soak.sh [SECONDS]     default 600
set -euo pipefail
cd "$(dirname "$0")/.."

end=$((SECONDS + ${1:-600})) round=0
while ((SECONDS < end)); do
	round=$((round + 1))
	echo "soak: round $round"
	make --no-print-directory race conformance
	scripts/examples.sh 2 5
	if ((EUID == 0)); then scripts/hosts.sh; fi
done
echo "soak: $round rounds without a failure"
