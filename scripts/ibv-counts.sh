#!/usr/bin/env bash
# Counts what operations over RDMA cost on an emulated machine (see
# internal/tools/vm) and compares with a C program that does the same over
# libibverbs (bench/counts/c): posts, requests, completions, receives and system
# calls to post for each operation must be equal. Numbers that depend on time are
# shown only: polls, calls from Go into C, and the cost of waiting, such as asking
# the device for an event ahead of sleep, which the C program never does. The
# latencies of perftest and ours follow, shown only, too.
#
#	scripts/ibv-counts.sh
#
# vm ends the machine when it prints nothing for TIMEOUT=900 seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:--buildvcs=false}"
work=.cache/vm
bin=$PWD/$work/counts
mkdir -p "$bin"

CGO_ENABLED=0 go build -o "$work/vm" ./internal/tools/vm
"$work/vm" -prepare # libibverbs' headers, for the builds below
CGO_ENABLED=0 go build -o "$bin/" ./cmd/grun
CGO_ENABLED=1 go build -tags ibverbs -o "$bin/ours" ./bench/counts
CGO_ENABLED=1 go build -tags ibverbs -o "$bin/" ./bench
gcc -O2 -Wall -Wextra -Werror -o "$bin/theirs" bench/counts/c/counts.c -libverbs

cat >"$bin/run" <<'END'
#!/bin/sh
# In the machine. $1: the folder of the programs; $2: 0 for no figures. A run of 640
# operations and one of 3200: the difference is the cost of 2560, without the start of the program.
bin=$1
# The kernel counts calls of write on the device. strace cannot: some attaches to a thread
# of Go end with EIO (PTRACE_LISTEN). It counts what is shown only.
tracing=/sys/kernel/tracing
[ -e $tracing/kprobe_events ] || mount -t tracefs tracefs $tracing || exit
echo 'p:device/writes ib_uverbs:ib_uverbs_write' >$tracing/kprobe_events || exit
echo 1 >$tracing/events/device/writes/enable || exit
writes() { awk '$1 == "writes" { print $2 }' $tracing/kprobe_profile; }
for op in put_flush get fetch_add put_notify; do
	for who in ours theirs; do
		for n in 640 3200; do
			before=$(writes)
			"$bin/$who" $op $n >/tmp/counts || { echo "FAIL $who $op $n"; exit 1; }
			echo "counted $who $op $n write/device $(($(writes) - before))"
			sed "s/^/counted $who $op $n /" /tmp/counts
			[ $2 = 0 ] && continue
			strace -f -c -o /tmp/all "$bin/$who" $op $n >/dev/null || { echo "strace failed: no system calls of $who $op $n"; continue; }
			awk -v w="called $who $op $n" '$1 ~ /^[0-9.]+$/ && $NF != "total" { print w, $NF, $4 }' /tmp/all
		done
	done
done
[ $2 = 0 ] && exit
for tool in ib_write_lat ib_read_lat ib_atomic_lat; do
	timeout 30 $tool -d rxe0 -s 8 -n 2000 >/tmp/server 2>&1 & server=$!
	sleep 1
	timeout 30 $tool -d rxe0 -s 8 -n 2000 127.0.0.1 >/tmp/client 2>&1 || cat /tmp/client
	awk -v t=$tool '$1 == 8 { print "lasts", t, $5 }' /tmp/client
	kill $server 2>/dev/null # some never end by themselves
	wait $server
done
"$bin/theirs" put_flush 5000 | awk '$1 == "microseconds" { print "lasts put_flush_in_C", $2 }'
export GRUN_ATOMICS=nic
"$bin/grun" -n 2 --provider ibv --timeout 10m "$bin/bench" put_notify_latency get_latency fetch_add_latency put_latency -size 8 -time 1s -json
END
"$work/vm" -timeout "${TIMEOUT:-900}s" -bin "$bin/grun" -bin "$bin/ours" -bin "$bin/theirs" -bin "$bin/bench" -- sh "$bin/run" "$bin" "${FIGURES:-1}" |
	tee "$work/counts.log" | awk -f scripts/ibv-counts.awk
