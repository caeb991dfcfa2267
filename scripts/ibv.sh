#!/usr/bin/env bash
# Runs the tests of verbs/ibv on an emulated machine with a software RDMA device
# (see internal/tools/vm). Arguments go to the tests: with -v all output is shown
# as it comes, otherwise that of failing tests and a line with counts.
#
#	scripts/ibv.sh [-run Conformance/Order] [-v]
#
# PACKAGES="./verbs/ibv" names the packages to test. vm ends the machine when no test has
# begun or ended for TIMEOUT=900 seconds; watchdogs end tests that hang sooner.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:--buildvcs=false}"
silence=${TIMEOUT:-900}
mkdir -p .cache/vm
work=$(mktemp -d -p .cache/vm) # apart from other runs
trap 'rm -rf "$work"' EXIT
vm=$work/vm

verbose=0 args=()
for arg; do
	case $arg in
	-v) verbose=1 ;;
	-test.*) args+=("$arg") ;;
	-*) args+=("-test.${arg#-}") ;;
	*) args+=("$arg") ;;
	esac
done

# summary keeps the output of each test until the test has ended.
summary() {
	awk '
		/^=== / { test = $3; if ($2 == "RUN") said[test] = ""; next }
		/^ *--- (PASS|FAIL|SKIP): / {
			count[$2]++
			if ($2 == "FAIL:") printf "%s\n%s", $0, said[$3]
			delete said[$3]
			test = ""
			next
		}
		/^(PASS|FAIL)$/ { next }
		{ said[test] = said[test] $0 "\n" }
		END { # output of no test, and of tests that a panic or a kill kept from their end
			for (test in said) {
				if (test != "") print "--- unfinished: " test
				printf "%s", said[test]
			}
			printf "%d passed, %d failed, %d skipped\n", count["PASS:"], count["FAIL:"], count["SKIP:"]
			if (!count["PASS:"]) exit 1 # nothing was tested
		}'
}

CGO_ENABLED=0 go build -o "$vm" ./internal/tools/vm
"$vm" -prepare

failed=0
while read -r package folder; do
	name=$(basename "$folder")
	binary=$work/$name.test log=.cache/vm/$name.log
	CGO_ENABLED=1 nice -n 10 go test -tags ibverbs -c -o "$binary" "$package"
	started=$SECONDS rc=0
	# In its folder, as under go test. test2json: each test ends with a line
	# when it ends, not when the test around it does; the lines begin with ^V.
	"$vm" -timeout "${silence}s" -env GOPGAS_IBV_REQUIRED=1 -env GOPGAS_PATIENCE=10 -bin "$binary" -- \
		sh -c 'cd "$1" && shift && exec "$@"' sh "${folder#"$PWD"/}" "${binary##*/}" -test.v=test2json -test.timeout=0 ${args[@]+"${args[@]}"} 2>&1 |
		sed -u 's/\x16//g' | tee "$work/log" | if ((verbose)); then cat; else summary; fi || rc=$?
	mv "$work/log" "$log"
	if ((rc == 0)); then
		echo "ok      $package, $((SECONDS - started)) s in the machine; $log has all output"
	else
		echo "FAILED  $package ($rc), $((SECONDS - started)) s in the machine; $log has all output"
		failed=1
	fi
done < <(go list -tags ibverbs -f '{{.ImportPath}} {{.Dir}}' ${PACKAGES:-./verbs/ibv})
exit "$failed"
