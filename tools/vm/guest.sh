#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# guest.sh - What runs inside the machine of tools/test-vm.sh, as its first process: the suites that SUITES names, or COMMAND
#
# Results go to the console; lines that begin with "carrel-vm:" are read by test-vm.sh. Integration is a part only: what a kernel and a
# cgroup version can change (start, limits, receipt, doctor, terminals, storage). Parsing, JSON, real builds and the library are left out:
# they do not depend on the kernel, and an emulated processor needs an hour for them.
cd "$TREE" || exit
export CARREL=$BUILD/carrel CARREL_SWITCHES=$TEST_BUILD/carrel CARREL_BUILD=$BUILD
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 TMPDIR=/tmp
status=0

result() { # NAME STATUS TEXT
	printf 'carrel-vm: result %-12s %s (%d s)\n' "$1" "$3" "$SECONDS"
	[ "$2" = 0 ] || status=1
}

unit() {
	local t out
	for t in init_groups init_exec init_clients seccomp layers_host layers_image layers_store layers_tree layers_upper warden_procfs warden_sweep; do
		out=$(timeout 300 "$BUILD/tests/unit/test_$t" 2>&1)
		local rc=$?
		[ $rc = 0 ] || printf '%s\n' "$out"
		result "unit/$t" $rc "$([ $rc = 0 ] && echo ok || echo "failed ($rc)")"
	done
}

suite() { # NAME PYTEST-ARGUMENTS...
	local name=$1 rc
	shift
	# no -s: what a test prints shows when it fails; each test has its own deadline, the machine has one for all
	/usr/bin/python3 -m pytest -p no:cacheprovider -q --tb=short --durations=5 --basetemp="/tmp/pytest-$name" "$@" 2>&1 | tee "/tmp/$name.out"
	rc=${PIPESTATUS[0]}
	result "$name" "$rc" "$(tail -n 1 "/tmp/$name.out")"
}

limits() { suite limits tests/vm tests/security/test_resources.py; }
security() { suite security --ignore=tests/security/test_resources.py tests/security; }
integration() {
	suite integration tests/integration/test_run_cli.py tests/integration/test_rootless.py tests/integration/test_storage.py \
		-k "not mistake and not help and not man_page and not json_ and not env_file and not hundred_thousand and not more_than_memory"
}

echo "carrel-vm: $(uname -r), $(cut -d ' ' -f 1 /proc/uptime) s after its start"
if [ -n "$COMMAND" ]; then
	bash -c "$COMMAND"
	status=$?
else
	for s in $SUITES; do
		"$s"
	done
	"$CARREL" doctor
	result doctor $? "$("$CARREL" doctor 2>&1 | tail -n 1)"
	/usr/bin/python3 tests/leaks.py --expect-clean --wait 10
	result leaks $? ""
fi
echo "carrel-vm: status $status"
sync
exec busybox poweroff -f
