#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test.sh - `make test`: build everything three ways and run every suite. test.sh [--all]
#
#   build/       as it ships
#   build-test/  the same with switches that take one layer of isolation out, for tests/security
#   build-asan/  AddressSanitizer and UndefinedBehaviorSanitizer, for the unit tests and fuzz corpora
#
# Long sweeps run as a seeded sample whose seed is printed; --all runs them whole. The last line counts what ran.
set -euo pipefail
cd "$(dirname "$0")/.."
sweep=sample
[ "${1:-}" = --all ] && sweep=all
export CARREL_SWEEP=$sweep
export CARREL_SEED=${CARREL_SEED:-$(date +%s)}
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_leaks=1
python=/usr/bin/python3
passed=0
failed=0
skipped=0
failures=()

say() { printf '\n== %s\n' "$*"; }

# configure DIR OPTIONS...: set up a build directory, or bring an old one up to date
configure() {
	local dir=$1
	shift
	[ -f "$dir/build.ninja" ] || meson setup "$dir" "$@" >/dev/null
	ninja -C "$dir" --quiet
}

# count PASSED FAILED SKIPPED NAME
count() {
	passed=$((passed + $1))
	failed=$((failed + $2))
	skipped=$((skipped + $3))
	[ "$2" = 0 ] || failures+=("$4")
}

run_meson() { # DIR SUITES...
	local dir=$1 log=$1/meson-logs/testlog.json rc=0
	shift
	meson test -C "$dir" --no-rebuild --print-errorlogs "${@/#/--suite=}" >"$dir/test.out" 2>&1 || rc=$?
	[ $rc = 0 ] || cat "$dir/test.out"
	count "$(grep -c '"result": "OK"' "$log" || true)" "$(grep -cE '"result": "(FAIL|TIMEOUT|ERROR|INTERRUPT)"' "$log" || true)" \
		"$(grep -c '"result": "SKIP"' "$log" || true)" "$dir $*"
	if [ $rc != 0 ] && ! grep -qE '"result": "(FAIL|TIMEOUT|ERROR|INTERRUPT)"' "$log"; then
		count 0 1 0 "$dir $* (exit $rc)"
	fi
	tail -n 9 "$dir/test.out" | grep -E 'Ok:|Fail:|Skipped:|Timeout:' || true
}

run_pytest() { # NAME ARGS...
	local name=$1 xml rc=0
	shift
	xml=build/pytest-$name.xml
	rm -f "$xml"
	$python -m pytest -p no:cacheprovider -q --durations=5 --junitxml="$xml" "$@" || rc=$?
	read -r p f s < <($python - "$xml" <<-'EOF'
	import sys, xml.etree.ElementTree as e
	try:
	    s = [x for x in e.parse(sys.argv[1]).getroot().iter("testsuite")][0].attrib
	    bad = int(s["failures"]) + int(s["errors"])
	    # What the kernel of this machine was built without cannot run on it; every other skip counts.
	    reasons = [x.get("message", "") for x in e.parse(sys.argv[1]).getroot().iter("skipped")]
	    lacking = sum(r.startswith("this kernel") for r in reasons)
	    if lacking:
	        print(f"{lacking} tests need what this kernel lacks, e.g.: {[r for r in reasons if r.startswith('this kernel')][0][:90]}", file=sys.stderr)
	    print(int(s["tests"]) - bad - len(reasons), bad, len(reasons) - lacking)
	except Exception:
	    print(0, 1, 0)
	EOF
	)
	count "$p" "$f" "$s" "$name"
	[ $rc = 0 ] || [ "$f" != 0 ] || count 0 1 0 "$name (exit $rc)"
}

tools/deps.sh test
say "build (seed $CARREL_SEED, sweeps: $sweep)"
configure build
configure build-test -Dtest_switches=true
configure build-asan -Db_sanitize=address,undefined -Dseccomp=log -Dtest_switches=true

say "unit tests and fuzz corpora"
run_meson build unit fuzz
say "the same under AddressSanitizer and UndefinedBehaviorSanitizer"
run_meson build-asan unit fuzz
say "source: headers, layers of include"
if tools/check.sh; then count 1 0 0 check; else count 0 1 0 check; fi

export CARREL=$PWD/build/carrel CARREL_SWITCHES=$PWD/build-test/carrel CARREL_BUILD=$PWD/build
for suite in integration security fault; do
	[ -n "$(ls tests/$suite/test_*.py 2>/dev/null)" ] || continue
	say "$suite"
	run_pytest $suite tests/$suite
done

say "what is left on the host"
if build/carrel doctor; then count 1 0 0 doctor; else count 0 1 0 "doctor finds orphans"; fi
if $python tests/leaks.py --expect-clean --wait 5; then count 1 0 0 leaks; else count 0 1 0 "leaks.py finds leaks"; fi

# A skip on a machine where everything can run is a test that is not there. As root on x86-64 nothing may skip.
if [ "$skipped" != 0 ] && [ "$(id -u)" = 0 ] && [ "$(uname -m)" = x86_64 ]; then
	count 0 1 0 "$skipped tests were skipped that should run here"
fi
printf '\n'
for f in "${failures[@]}"; do printf 'failed: %s\n' "$f"; done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
