#!/usr/bin/env bash
# Peer DMA between NVMe devices on an emulated machine: a disk reads and writes the memory of another
# controller, and no byte passes through the host's. Outside CI: Debian's own kernel has no PCI_P2PDMA, so this
# fetches one from a newer suite (120 MB, once), and then takes a minute.
#
#	scripts/peerdma.sh          # SUITE=trixie-backports
#
# It needs apt and root. It prints a line for each pair of memory and disk:
#
#	memory of A, disk B: N steps, WAY; kernel: transferred both ways, bytes right; prediction right
#
# N and WAY are what device/catalog computes from sysfs. "kernel" is what the kernel did. The first machine has a
# processor that is known to pass transfers on between root ports, so all three disks succeed. The second has none: the
# disk below the other root port must be refused there. The exit code is 0 if all lines are right.
#
# Last, the machine maps dma-bufs that the kernel makes of memfds, and passes them to another process.
#
# Emulation shows which way data goes (QEMU addresses the controller's memory) and no time.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:--buildvcs=false}" CGO_ENABLED=0
suite=${SUITE:-trixie-backports}
work=$PWD/.cache/vm/peerdma/$suite
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/debs"

# apt with the servers of this machine, another suite, and lists of its own.
server=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep -v security | head -n 1)
[ "$server" ] || { echo "apt knows no server of Debian" >&2; exit 1; }
echo "deb $server $suite main" >"$work/list"
options=(-q -o "Dir::Etc::sourcelist=$work/list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/archives")
if [ ! -e "$work/complete" ]; then
	apt-get "${options[@]}" update
	image=$(apt-cache "${options[@]}" show --no-all-versions linux-image-amd64 | grep -o 'linux-image-[0-9][^ ]*' | head -n 1)
	version=${image#linux-image-}
	(cd "$work/debs" && apt-get "${options[@]}" download "linux-binary-$version" "linux-modules-$version" "linux-base-$version")
	touch "$work/complete"
fi

go build -o .cache/vm/vm ./internal/tools/vm
go build -o "$work/run" ./internal/tools/peerdma
go test -c -o "$work/device.test" ./device
for cpu in EPYC,-erms,check=off max,-erms,-fsrm; do
	echo "processor $cpu"
	.cache/vm/vm -packages "$work/debs" -nvme 64 -cpu "$cpu" -memory 1536 -timeout "${TIMEOUT:-300}s" -- "$work/run"
done
echo "dma-bufs"
.cache/vm/vm -packages "$work/debs" -nvme 64 -memory 1536 -timeout "${TIMEOUT:-300}s" -env GOPGAS_UDMABUF_REQUIRED=1 -bin "$work/device.test" -- \
	"$work/device.test" -test.v -test.run TestDMABuf
