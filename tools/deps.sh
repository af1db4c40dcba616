#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deps.sh - Install the Debian packages that a task needs and that are missing, after saying which: deps.sh build|test|bench|vm|arm64
set -eu

build="gcc libc6-dev pkg-config meson ninja-build python3 musl-dev libseccomp-dev libarchive-dev libcmocka-dev linux-libc-dev"
test="$build python3-pytest python3-pexpect clang libclang-rt-14-dev clang-format uidmap e2fsprogs strace gdb tmux git dpkg-dev \
make gcc g++ tar xz-utils zstd procps util-linux binutils mmdebstrap sqlite3 perl python3-venv python3-pip netbase tzdata adduser \
groff-base file"
arm64="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static file"
vm="qemu-system-x86 busybox-static kmod e2fsprogs"
bench="$build bubblewrap crun runc systemd-container debootstrap"

case "${1:-}" in
build) want=$build ;;
test) want=$test ;;
bench) want=$bench ;;
vm) want=$vm ;;
arm64) want=$arm64 ;;
*) echo "usage: deps.sh build|test|bench|vm|arm64" >&2; exit 2 ;;
esac

# node with npm comes in more than one shape, which exclude each other
[ "$1" != test ] || command -v npm >/dev/null || want="$want nodejs npm"

missing=
for package in $want; do
	dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -q '^installed$' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "Missing Debian packages:$missing"
if [ "$(id -u)" != 0 ]; then
	echo "Install them as root: apt-get install$missing" >&2
	exit 1
fi
echo "Installing them with apt-get."
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 || {
	apt-get update -qq
	# shellcheck disable=SC2086
	apt-get install -y -qq --no-install-recommends $missing >/dev/null
}
