#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test-arm64.sh - Cross-build everything for arm64, and run what needs no arm64 kernel under QEMU's user emulation
#
# The emulation passes system calls on to this machine's kernel and knows neither namespaces nor seccomp filters for what it runs, so
# no sandbox can be started: what is tested is that everything builds, that the static program starts, plans and refuses, and that the code without
# a kernel behind it (base, wire, options, JSON, the filter programs, names of archives) does the same on arm64.
#
# arm64 packages are unpacked below build/vm/arm64 by an apt configuration of its own: the machine's architectures stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD
dir=$tree/build/vm/arm64
sysroot=$dir/sysroot
build=${ARM64_BUILD:-$tree/build-arm64}
packages="musl-dev:arm64 libarchive-dev:arm64 libarchive13:arm64 libcmocka-dev:arm64 libcmocka0:arm64"
failed=0

say() { printf '\n== %s\n' "$*"; }

fetch() {
	[ "$(cat "$dir/packages" 2>/dev/null)" = "$packages" ] && return
	say "fetching $packages (unpacked below build/vm/arm64, not installed)"
	rm -rf "$dir"
	mkdir -p "$dir/lists/partial" "$dir/archives/partial" "$dir/fetched" "$sysroot"
	cat >"$dir/apt.conf" <<-EOF2
	APT::Architectures { "$(dpkg --print-architecture)"; "arm64"; };
	Dir::State::lists "$dir/lists";
	Dir::Cache::archives "$dir/archives";
	Dir::Cache::pkgcache "";
	Dir::Cache::srcpkgcache "";
	EOF2
	export APT_CONFIG=$dir/apt.conf
	apt-get update -qq
	# shellcheck disable=SC2086
	(cd "$dir/fetched" && apt-get download -qq $packages 2>&1 | grep -v '^W: Download is performed unsandboxed' >&2 || true)
	for package in "$dir"/fetched/*.deb; do
		dpkg-deb -x "$package" "$sysroot"
	done
	rm -rf "$dir/lists" "$dir/archives" "$dir/fetched"
	echo "$packages" >"$dir/packages"
}

check() { # NAME COMMAND...
	local name=$1 out rc=0
	shift
	out=$(timeout 300 "$@" 2>&1) || rc=$?
	if [ $rc = 0 ]; then
		printf '  %-28s ok\n' "$name"
	else
		printf '%s\n  %-28s failed (%d)\n' "$out" "$name" $rc
		failed=$((failed + 1))
	fi
}

tools/deps.sh build
tools/deps.sh arm64
fetch
say "cross-build"
cat >"$dir/sysroot.txt" <<EOF2
[constants]
sysroot = '$sysroot'
EOF2
[ -f "$build/build.ninja" ] || meson setup "$build" --cross-file "$dir/sysroot.txt" --cross-file tools/vm/arm64.txt \
	-Dmusl=enabled -Dmusl_prefix="$sysroot/usr" >"$dir/setup.out" || { cat "$dir/setup.out"; exit 1; }
ninja -C "$build" --quiet >"$dir/build.out" 2>&1 || { cat "$dir/build.out"; exit 1; }
file -b "$build/carrel" | cut -d , -f 1-4
ls -l "$build/carrel" "$build/src/init/carrel-init" | awk '{ print $5, $9 }'

say "under QEMU's user emulation"
libraries=$sysroot/usr/lib/aarch64-linux-gnu
check "carrel version" qemu-aarch64-static "$build/carrel" version
check "carrel run --dry-run" qemu-aarch64-static "$build/carrel" run --dry-run -m 100m --pids-limit 50 -- true
check "a mistake is 125" bash -c '! timeout 20 qemu-aarch64-static "$0" run --no-such-option; [ $? = 0 ]' "$build/carrel"
# glibc's programs find their loader in the cross compiler's tree (-L). Without `sock`: 7.2 does not say when descriptors were cut off (MSG_CTRUNC).
emulate="qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=$libraries"
for t in buf err fd str wire msg cli_env_file cli_json cli_options; do
	check "unit/$t" $emulate "$build/tests/unit/test_$t"
done
for t in str wire; do
	check "fuzz corpus/$t" $emulate "$build/tests/fuzz/replay_$t" "$tree/tests/fuzz/corpus/$t" 2000
done
printf '\n'
[ $failed = 0 ] && echo "passed" || echo "$failed failed"
[ $failed = 0 ]
