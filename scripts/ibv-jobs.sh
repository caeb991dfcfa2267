#!/usr/bin/env bash
# Runs jobs of several processes on an emulated machine with a software RDMA
# device (see internal/tools/vm): examples that check their own results, the litmus tests
# and random programs of windows, with atomics by the targets' CPUs and by the device; a rank that is
# killed; windows in memory of devices; the message of a program built without RDMA.
#
#	scripts/ibv-jobs.sh
#
# vm ends the machine when it prints nothing for TIMEOUT=900 seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:--buildvcs=false}"
work=.cache/vm
bin=$PWD/$work/jobs
mkdir -p "$bin"

CGO_ENABLED=0 go build -o "$work/vm" ./internal/tools/vm
CGO_ENABLED=0 go build -o "$bin/" ./cmd/grun
CGO_ENABLED=0 go build -o "$bin/without" ./examples/hello
CGO_ENABLED=1 go build -tags ibverbs -o "$bin/" ./examples/hello ./examples/wordcount ./examples/gups ./examples/devmem
CGO_ENABLED=1 go test -tags ibverbs -c -o "$bin/litmus.test" ./litmus
CGO_ENABLED=1 go test -tags ibverbs -c -o "$bin/window.test" ./window

cat >"$bin/run" <<'END'
#!/bin/sh
# In the machine. $1: the folder of the programs.
bin=$1 failed=0
try() {
	if "$@"; then echo "ok    $*"; else echo "FAIL  $*"; failed=1; fi
}
for by in cpu nic; do
	export GRUN_ATOMICS=$by
	echo "atomics by $by"
	try "$bin/grun" -n 2 --provider ibv --timeout 10m "$bin/hello"
	try "$bin/grun" -n 4 --provider ibv --timeout 10m --stats "$bin/wordcount" -verify window
	try "$bin/grun" -n 3 --provider ibv --timeout 10m "$bin/gups" -log2 10
done
unset GRUN_ATOMICS

# killed: the other ranks learn of it, and the job ends with its signal's code.
killed() {
	"$bin/grun" -n 3 --provider ibv --timeout 10m --grace 5m "$bin/gups" -log2 20 >/tmp/killed 2>&1 & job=$!
	for i in $(seq 600); do # until all are connected
		[ "$(rdma resource show qp | grep -c 'state RTS')" -lt 6 ] || break
		sleep 1
	done
	kill -9 "$(ranks | tail -n 1)"
	wait $job
	rc=$?
	cat /tmp/killed
	[ $rc = 137 ] && grep -q "rank is dead" /tmp/killed && grep -q "died of SIGKILL" /tmp/killed && [ -z "$(ranks)" ]
}
ranks() { # their process ids
	for p in /proc/[0-9]*; do [ "$(readlink $p/exe)" = "$bin/gups" ] && echo "${p#/proc/}"; done
}
try killed

# without: the program has no RDMA; it says so once, or fails and names the remedy.
without() {
	"$bin/grun" -n 3 "$bin/without" >/tmp/said 2>&1 || return 1
	cat /tmp/said
	[ "$(grep -c "cannot use rxe0.*-tags ibverbs" /tmp/said)" = 1 ] || return 1
	! "$bin/grun" -n 2 --provider ibv "$bin/without" >/tmp/said 2>&1 || return 1
	cat /tmp/said
	grep -q "built without tag ibverbs" /tmp/said
}
try without

# list: ranks of one pretended host use memory, and the device to the other host. auto does
# the same, and a program without RDMA takes tcp.
list() { # provider, between hosts, program, arguments...
	near=shm list=$1 far=$2
	shift 2
	GRUN_HOSTS=a,a,b,b "$bin/grun" -n 4 --provider "$list" --timeout 10m --stats "$bin/$@" >/tmp/said 2>&1 || { cat /tmp/said; return 1; }
	grep -v -w self /tmp/said
	awk -v near=$near -v far=$far '
		NF == 9 && $1 $2 ~ /^[0-9]+$/ && $1 != $2 { if ($3 != (int($1 / 2) == int($2 / 2) ? near : far)) wrong = 1; else count += $4 }
		END { exit wrong || !count }' /tmp/said
}
try list shm,ibv ibv wordcount -verify window
try list auto ibv hello
try list auto tcp without
try list shm,tcp tcp hello

# mixed: a list with memory leaves no atomics to the device.
mixed() {
	! GRUN_ATOMICS=nic "$bin/grun" -n 2 --provider shm,ibv --timeout 10m "$bin/hello" >/tmp/said 2>&1 || return 1
	cat /tmp/said
	grep -q "choose one provider, such as ibv, or atomics by cpu" /tmp/said
}
try mixed

# settings: a program takes those that devices know, and refuses the rest.
settings() {
	GRUN_RDMA=device=rxe0,port=1,mtu=1024,retries=3 "$bin/grun" -n 2 --provider ibv --timeout 10m "$bin/hello" &&
		! GRUN_RDMA=device=rxe7 "$bin/grun" -n 2 --provider ibv --timeout 10m "$bin/hello" >/tmp/said 2>&1 || return 1
	cat /tmp/said
	grep -q 'no device "rxe7" among \["rxe0"\]' /tmp/said
}
try settings

# devmem: elements in memory of devices. Over ibv they go from one rank's device-dax to another's by
# RDMA and through no stage; a PCI device's memory is refused there, and neither copied nor replaced.
dax=/dev/dax0.0 bar=/sys/bus/pci/devices/0000:00:10.0/resource2
devmem() { # provider, way, memory of each rank...
	provider=$1 way=$2
	shift 2
	"$bin/grun" -n 2 --provider $provider --timeout 10m --stats "$bin/devmem" -want "$way" "$@" >/tmp/said 2>&1 || { cat /tmp/said; return 1; }
	cat /tmp/said
	[ $provider != ibv ] || awk '
		/ staged / { for (i = 1; i <= NF; i++) if ($i == "staged") column = i; next }
		column && $3 == "ibv" && $column >= 4096 { wrong = 1 }
		END { exit wrong || !column }' /tmp/said
}
try devmem ibv "requests over ibv" $dax $dax
try devmem ibv refused $dax $bar
# bounced: on request the host's memory carries it, and --stats counts each byte, of both ranks.
bounced() {
	"$bin/grun" -n 2 --provider ibv --timeout 10m --stats "$bin/devmem" -bounce -want "bounced at the target, over ibv" $bar ${bar}_wc >/tmp/said 2>&1 || { cat /tmp/said; return 1; }
	cat /tmp/said
	awk '/ staged / { for (i = 1; i <= NF; i++) if ($i == "staged") column = i; next }
		column && $3 == "ibv" && $1 != $2 { if ($column < 524288) wrong = 1; n++ }
		END { exit wrong || n != 2 }' /tmp/said
}
try bounced
try devmem shm mapped $bar ${bar}_wc
try devmem shm mapped $dax $bar
try devmem tcp "requests over tcp" $bar $dax
echo 8 >/proc/sys/vm/nr_hugepages
try devmem ibv "requests over ibv" huge -
export GOPGAS_ONLY=ibv # random programs of all operations give the memory of the model
try "$bin/window.test" -test.short -test.timeout=0 -test.run '^TestRandomProgramGivesTheSameMemoryOnAllTransports$'
unset GOPGAS_ONLY
cd litmus && try "$bin/litmus.test" -test.v -test.timeout=0 -test.run /ibv
exit $failed
END
programs=(-bin "$bin/grun")
for p in hello wordcount gups devmem litmus.test window.test; do programs+=(-bin "$bin/$p"); done
exec "$work/vm" -dax 64 -bar 16 -timeout "${TIMEOUT:-900}s" -env GOPGAS_PATIENCE=10 "${programs[@]}" -- sh "$bin/run" "$bin"
