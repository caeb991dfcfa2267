#!/bin/busybox sh
# The first process of the machine: it prepares the machine, runs the command and
# ends the machine with the command's exit code.

# Ends the machine. The console first sends the rest of its output.
end() {
	/bin/busybox stty -F /dev/console sane
	/bin/busybox poweroff -f
}

# Runs a step that the machine cannot do without.
must() {
	"$@" && return
	echo "vm: failed in the machine: $*"
	end
}

export PATH=/bin:/busybox HOME=/tmp TERM=dumb
must /bin/busybox mkdir /busybox
must /bin/busybox --install -s /busybox
must mount -t proc proc /proc
must mount -t sysfs sysfs /sys
must mount -t devtmpfs devtmpfs /dev
must mkdir /dev/shm
must mount -t tmpfs tmpfs /dev/shm
must mount -t tmpfs tmpfs /tmp
must mount -t tmpfs tmpfs /run
hostname "vm$machine" # QEMU's command line has the machine's number on a network
ulimit -n 65536
for module in /modules/*; do must insmod "$module"; done

. /command.sh
must mkdir -p "$share"
must mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share "$share"

# Makes device-dax of all memory of an NVDIMM, as ndctl would.
dax() {
	cd /sys/bus/nd/devices || return
	seed=$(cat region0/dax_seed)
	echo namespace0.0 >/sys/bus/nd/drivers/nd_pmem/unbind
	cat /proc/sys/kernel/random/uuid >"$seed/uuid"
	echo 2097152 >"$seed/align" && echo ram >"$seed/mode" && echo namespace0.0 >"$seed/namespace" &&
		echo "$seed" >/sys/bus/nd/drivers/dax_pmem/bind
	cd /
	tries=0
	until [ -e /dev/dax0.0 ]; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || return
		sleep 0.1
	done
}
[ ! -e /sys/bus/nd/devices/region0 ] || must dax
bar=/sys/bus/pci/devices/0000:00:10.0
[ ! -e $bar/resource2 ] || echo 1 >$bar/enable

[ -e /bin/ip ] || must ln -s /busybox/ip /bin/ip
must /bin/ip link set lo up
device=lo
gid=0000:0000:0000:0000:0000:ffff:7f00:0001 # 127.0.0.1
if [ "$machine" ]; then
	device=eth0
	gid=0000:0000:0000:0000:0000:ffff:0a00:010$machine # 10.0.1.$machine
	must /bin/ip link set eth0 up
	must /bin/ip address add "10.0.0.$machine/24" dev eth0
	must /bin/ip address add "10.0.1.$machine/24" dev eth0
fi
rxe() {
	must rdma link add rxe0 type rxe netdev $device
	# The kernel enters the addresses of a device a little later.
	tries=0
	until grep -q "$gid" /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || must false "no GID $gid"
		sleep 0.1
	done
}
[ ! -e /bin/rdma ] || rxe

if [ "$machine" ]; then
	must mkdir -p /run/sshd
	must /bin/sshd
fi
if [ "$machine" = 1 ]; then # the command needs the other one
	until ssh -o ConnectTimeout=5 vm2 true 2>/tmp/ssh; do sleep 0.2; done # the tool has the limit
fi

must cd "$share"
echo "vm: ready" # the tool waits for this line
while [ "${machine:-1}" != 1 ]; do sleep 3600; done # the tool ends this machine
(command </dev/null)
code=$?
kill -KILL -1 # what it left running; this process is spared
sync
dmesg -n 1 # no line of the kernel breaks into the next one
echo "vm: exit $code" # the tool ends the machine at this line
end
