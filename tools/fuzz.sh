#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh - `make fuzz`: each fuzzer for a minute (FUZZ_SECONDS), from its corpus; new inputs and crashes go to build-fuzz/
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
[ -f build-fuzz/build.ninja ] || CC=clang meson setup build-fuzz -Dfuzzers=true -Dmusl=disabled -Db_lundef=false >/dev/null
mapfile -t targets < <(sed -nE "s/.*'name': '([a-z]+)'.*/\1/p" tests/fuzz/meson.build | sort -u)
ninja -C build-fuzz --quiet $(printf 'tests/fuzz/fuzz_%s ' "${targets[@]}")
for target in "${targets[@]}"; do
	echo "== fuzz_$target, $seconds s"
	mkdir -p "build-fuzz/corpus-$target"
	"build-fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=70000 -print_final_stats=1 \
		-artifact_prefix="build-fuzz/crash-$target-" "build-fuzz/corpus-$target" "tests/fuzz/corpus/$target" 2>&1 | tail -n 12
done
