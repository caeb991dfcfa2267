#!/usr/bin/env bash
# Installs packages of Debian by apt, as root or by a sudo without a password. apt-get waits for the lock
# of another installation. This script tries again for five minutes while another apt-get, such as
# that of a fresh machine, holds another lock, or a server does not answer.
#
#	scripts/install.sh PACKAGE...
set -euo pipefail

root=()
((EUID == 0)) || root=(sudo -n)
apt() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=5 "$@"; }
until apt update && apt install -y --no-install-recommends "$@"; do
	((SECONDS < 300)) || exit 1
	sleep 5
done
