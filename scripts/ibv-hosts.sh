#!/usr/bin/env bash
# Runs jobs on two emulated machines, each with a software RDMA device (see
# internal/tools/vm): all examples, which check their own results, started by grun over ssh
# and some joined by hand; the checks of windows, pipes and collectives; a rank that is
# killed; a link that is cut.
#
#	scripts/ibv-hosts.sh
#
# vm ends the machines when they print nothing for TIMEOUT=900 seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:--buildvcs=false}"
work=.cache/vm
mkdir -p "$work"
bin=$(mktemp -d -p "$PWD/$work")
trap 'rm -rf "$bin"' EXIT

CGO_ENABLED=0 go build -o "$bin/" ./internal/tools/vm ./cmd/grun
examples=(hello heat wordcount pipes gups farmemory http kmeans sgd)
CGO_ENABLED=1 go build -tags ibverbs -o "$bin/" "${examples[@]/#/./examples/}"
checks=(window rpipe collectives)
for p in "${checks[@]}"; do CGO_ENABLED=1 go test -c -tags ibverbs -o "$bin/$p.test" "./$p"; done

cat >"$bin/run" <<'END'
#!/bin/sh
# In the first machine. $1: the folder of the programs, which the second has as well.
bin=$1 failed=0
cd "$bin" # by name in the second one, too
try() {
	if "$@"; then echo "ok    $*"; else echo "FAIL  $*"; failed=1; fi
}
tell() { # file: shows it, and keeps vm from taking a long file for silence
	sed 's/^/    /' "$1" | tail -n 30
}

# job: the example ends well, and its ranks use memory within a machine and ibv to the other.
job() { # program, arguments...
	"$bin/grun" -H vm1:2,vm2:2 --provider "${list:-shm,ibv}" --timeout 10m --stats $flags "$bin/$@" >/tmp/job 2>&1
	rc=$?
	tell /tmp/job
	[ $rc = 0 ] && awk '
		NF == 9 && $1 $2 ~ /^[0-9]+$/ && $1 != $2 { if ($3 != (int($1 / 2) == int($2 / 2) ? "shm" : "ibv")) wrong = 1; else count += $4 }
		END { exit wrong || !count }' /tmp/job
}
try job hello
list=auto try job hello
try job heat
try job wordcount
try job pipes
try job gups -log2 14
try job farmemory -keys 50 -ops 400
try job http
try job kmeans -points 20000
try job sgd -steps 100 -accuracy 0.4

# The bodies of these packages' tests compare operations with models.
export GOPGAS_TESTJOB_BODY="on hosts"
for p in window rpipe collectives; do flags="-x GOPGAS_TESTJOB_BODY -x GOPGAS_PATIENCE" try job $p.test; done
unset GOPGAS_TESTJOB_BODY

# at runs a program as a rank that joins by hand, in the background. Its output and its
# exit code are in files of its number.
secret=$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \n')
at() { # rank, variables and program...
	rank=$1
	shift
	line="cd $bin; GRUN_ADDR=vm1:7000 GRUN_SECRET=$secret GRUN_SIZE=4 GRUN_RANK=$rank GRUN_PROVIDER=${list:-shm,ibv} $* >said.$rank 2>&1; echo \$? >code.$rank"
	rm -f "code.$rank"
	if [ "$rank" -lt 2 ]; then sh -c "$line" & else ssh vm2 "$line" & fi
}

# byhand: ranks that no launcher started do the same.
byhand() {
	for r in 0 1 2 3; do at $r "$bin/$@"; done
	wait
	cat said.*
	[ "$(cat code.*)" = "$(printf '0\n0\n0\n0')" ]
}
try byhand hello
try byhand wordcount

running() { # until both machines have connected queue pairs
	for i in $(seq 600); do
		for on in "sh -c" "ssh vm2"; do
			[ "$($on 'rdma resource show qp' | grep -c 'state RTS')" -ge 4 ] || { sleep 1; continue 2; }
		done
		return
	done
	return 1
}
ranks='for p in /proc/[0-9]*; do case "$(readlink $p/exe)" in */gups) echo "${p#/proc/}";; esac; done'

# killed: a rank of the second machine dies. Each other rank gets ErrRankDead, or the abort of
# a rank that got it, and all end.
killed() {
	for r in 0 1 2 3; do at $r "$bin/gups" -log2 20; done
	running || return 1
	ssh vm2 "kill -9 \$($ranks | tail -n 1)"
	wait
	tail -n 3 said.*
	[ "$(cat code.* | sort -n | tail -n 1)" = 137 ] && [ "$(grep -l 'rank is dead' said.0 said.1 | wc -l)" = 2 ] && [ -z "$(sh -c "$ranks")$(ssh vm2 "$ranks")" ]
}
list=ibv try killed

# grunkilled: grun tells them that the rank died, and ends with the code of its signal.
grunkilled() {
	"$bin/grun" -H vm1:2,vm2:2 --provider ibv --timeout 10m --grace 5m "$bin/gups" -log2 20 >/tmp/killed 2>&1 & job=$!
	running || return 1
	ssh vm2 "kill -9 \$($ranks | tail -n 1)"
	wait $job
	rc=$?
	tell /tmp/killed
	[ $rc = 137 ] && grep -q 'rank is dead' /tmp/killed && grep -q 'on vm2 died of SIGKILL' /tmp/killed && [ -z "$(sh -c "$ranks")$(ssh vm2 "$ranks")" ]
}
try grunkilled

# cut: frames of the RDMA devices go to an address that no machine has, while the way to the
# rendezvous is whole. The first rank to get ErrUnreachable aborts the job, and all end.
cut() {
	for r in 0 1 2 3; do at $r GRUN_PEER_TIMEOUT=5s "GRUN_RDMA=gid=10.0.1.$((r / 2 + 1))" "$bin/gups" -log2 20; done
	running || return 1
	nowhere="lladdr 52:54:00:00:00:99 dev eth0 nud permanent"
	/bin/ip neigh replace 10.0.1.2 $nowhere && ssh vm2 /bin/ip neigh replace 10.0.1.1 $nowhere || return 1
	since=$(date +%s)
	wait
	echo "the ranks ended after $(($(date +%s) - since)) s"
	tail -n 3 said.*
	/bin/ip neigh del 10.0.1.2 dev eth0
	ssh vm2 /bin/ip neigh del 10.0.1.1 dev eth0
	[ "$(grep -l 'rank is unreachable (connection over ibv lost' said.* | wc -l)" = 4 ] && [ "$(cat code.* | grep -cx 1)" = 4 ] && [ -z "$(sh -c "$ranks")$(ssh vm2 "$ranks")" ]
}
list=ibv try cut
exit $failed
END
programs=(-bin "$bin/grun")
for p in "${examples[@]}" "${checks[@]/%/.test}"; do programs+=(-bin "$bin/$p"); done
"$bin/vm" -machines 2 -timeout "${TIMEOUT:-900}s" -env GOPGAS_PATIENCE=10 "${programs[@]}" -- sh "$bin/run" "$bin"
