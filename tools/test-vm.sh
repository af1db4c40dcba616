#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test-vm.sh - `make test-vm`: the limits and security suites on Debian 12's own kernel (6.1) and cgroup v2, in an emulated machine
#
#   tools/test-vm.sh [SUITE...]     unit limits security integration (default: all of them); see tools/vm/guest.sh
#   tools/test-vm.sh -- COMMAND     run a shell command in the machine instead
#
# The machine is this one seen through 9p, read-only, with a file system in memory on top, so that nothing has to be installed inside and
# nothing done there stays. The kernel comes from apt and is unpacked, not installed. A disk of its own (ext4 with project quotas) holds /tmp
# and the store. The processor is emulated: slow (some ten times), and the same wherever it runs, with or without KVM.
#
# Everything made or fetched is in build/vm. Environment: BUILD and TEST_BUILD (build directories), VM_DEADLINE_S, VM_MEMORY_MB.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD
vm=$tree/build/vm
BUILD=$(realpath -m "${BUILD:-build}")
TEST_BUILD=$(realpath -m "${TEST_BUILD:-build-test}")
deadline_s=${VM_DEADLINE_S:-1800}
memory_mb=${VM_MEMORY_MB:-3072}
command=
suites="unit limits security integration"
if [ "${1:-}" = -- ]; then
	shift
	command=$*
elif [ $# != 0 ]; then
	suites=$*
fi

say() { printf '\n== %s\n' "$*"; }

fetch_kernel() {
	local package
	package=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
	[ -n "$package" ] || { echo "test-vm: apt knows no linux-image-amd64; run apt-get update" >&2; exit 1; }
	[ "$(cat kernel/package 2>/dev/null)" = "$package" ] && return
	say "fetching $package (unpacked below build/vm, not installed)"
	rm -rf kernel fetched
	mkdir fetched
	(cd fetched && apt-get download -qq "$package" 2>&1 | grep -v '^W: Download is performed unsandboxed' >&2 || true)
	dpkg-deb -x fetched/"$package"_*.deb kernel
	# The machine sees the modules as a layer over its root, where /lib is a link.
	mkdir -p kernel/layer/usr/lib
	mv kernel/lib/modules kernel/layer/usr/lib/modules
	rmdir kernel/lib
	ln -s layer/usr/lib kernel/lib
	depmod -b "$vm/kernel" "$(cd kernel/lib/modules && echo *)"
	rm -rf fetched
	echo "$package" >kernel/package
}

# What the kernel needs to reach its root; everything else it loads by itself, as on any machine.
pack_initramfs() {
	local release module n=0
	release=$(cd "$vm/kernel/lib/modules" && echo *)
	mkdir -p initramfs/{bin,proc,sys,dev,host,kernel,over,root,modules}
	cp "$(command -v busybox)" initramfs/bin/busybox
	cp "$tree/tools/vm/init" initramfs/init
	chmod 755 initramfs/init
	for module in $(modprobe -d "$vm/kernel" -S "$release" --show-depends -a virtio_pci virtio_blk 9pnet_virtio 9p overlay ext4 crc32c_generic quota_v2 \
		virtio_rng | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++'); do
		cp "$module" "$work/initramfs/modules/$(printf %03d $n)-${module##*/}"
		n=$((n + 1))
	done
	cat >initramfs/job <<-EOF2
	export TREE='$tree' VM='$vm' BUILD='$BUILD' TEST_BUILD='$TEST_BUILD' SUITES='$suites' COMMAND='${command//\'/\'\\\'\'}'
	EOF2
	(cd initramfs && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >initramfs.gz
}

make_disk() {
	truncate -s 4G disk
	mke2fs -q -t ext4 -O quota,project -E quotatype=prjquota,lazy_itable_init=1,nodiscard disk
}

build() { # DIR OPTIONS...
	local dir=$1
	shift
	[ -f "$dir/build.ninja" ] || meson setup "$dir" "$@" >/dev/null
	ninja -C "$dir" --quiet >"$dir/build.out" 2>&1 || { cat "$dir/build.out"; return 1; }
}

if [ "$(id -u)" != 0 ]; then
	echo "test-vm: needs root, to show all of this machine's files to the emulated one" >&2
	exit 1
fi
tools/deps.sh test
tools/deps.sh vm
say "build"
build "$BUILD"
build "$TEST_BUILD" -Dtest_switches=true
mkdir -p "$vm"
cd "$vm"
fetch_kernel
work=$(mktemp -d "$vm/run.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
cd "$work"
pack_initramfs
make_disk

say "starting $(cat "$vm/kernel/package"), emulated, for at most $((deadline_s / 60)) minutes"
started=$(date +%s)
# -no-reboot: a panic ends the machine. The disk may be lost at any time, so it is never flushed.
timeout --foreground -k 10 "$deadline_s" qemu-system-x86_64 -accel tcg,thread=multi -cpu max,la57=off -smp 2 -m "$memory_mb" -nodefaults \
	-display none -monitor none -serial stdio -no-reboot -kernel "$vm"/kernel/boot/vmlinuz-* -initrd initramfs.gz \
	-append "console=ttyS0 quiet loglevel=1 panic=-1 mitigations=off random.trust_cpu=on" \
	-device virtio-rng-pci -drive file=disk,if=virtio,format=raw,cache=unsafe \
	-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
	-virtfs local,path="$vm/kernel/layer",mount_tag=modules,security_model=none,readonly=on,multidevs=remap \
	</dev/null 2>&1 | sed -u 's|\r||g' | tee "$vm/console.log" || true

status=$(sed -n 's/^carrel-vm: status \([0-9]*\)$/\1/p' "$vm/console.log" | tail -n 1)
printf '\n== %s, cgroup v2, in %d s\n' "$(cat "$vm/kernel/package")" $(($(date +%s) - started))
sed -n 's/^carrel-vm: result /  /p' "$vm/console.log"
if [ -z "$status" ]; then
	echo "failed: the machine gave no result (see build/vm/console.log)"
	exit 1
fi
[ "$status" = 0 ] && echo "passed" || echo "failed (status $status)"
exit "$status"
