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
since=0

result() { # NAME STATUS TEXT
	printf 'carrel-vm: result %-20s %s (%d s)\n' "$1" "$3" $((SECONDS - since))
	since=$SECONDS
	[ "$2" = 0 ] || status=1
}

unit() {
	local t out
	for t in init_groups seccomp layers_host layers_image layers_store layers_upper; do
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
	/usr/bin/python3 -m pytest -p no:cacheprovider -q --tb=short --durations=5 --basetemp=/tmp/pytest "$@" 2>&1 | tee /tmp/suite.out
	rc=${PIPESTATUS[0]}
	result "$name" "$rc" "$(tail -n 1 /tmp/suite.out)"
}

limits() {
	suite limits/cgroup2 tests/vm
	# 9p has no idmapped mounts, so /usr/local is nobody's here
	suite limits/attacks --deselect "tests/security/test_resources.py::test_space_ends_where_it_was_said[root-/usr/local-options1]" \
		tests/security/test_resources.py
}
security() { suite security --ignore=tests/security/test_resources.py tests/security; }
integration() {
	# tmpfs has user xattrs since 6.6; `auto` never takes a loop where the store has quotas, as here
	suite integration tests/integration/test_run_cli.py tests/integration/test_rootless.py tests/integration/test_storage.py \
		--deselect "tests/integration/test_storage.py::test_setuid_bits_hardlinks_xattrs_and_holes_survive[tmpfs]" \
		-k "not auto_takes_memory and not mistake and not help and not man_page and not json_ and not env_file and not hundred_thousand and not more_than_memory"
}

# What a host has by its second hour: an interface besides lo, and the modules that the attacks would load one by one
modprobe dummy numdummies=1
modprobe -a loop ip_tables iptable_filter
/usr/bin/python3 - <<'EOF2'
import socket
for family in range(1, 46):
    for kind in range(1, 6):
        try:
            socket.socket(family, kind).close()
        except OSError:
            pass
EOF2
echo "carrel-vm: $(uname -r), $(cut -d ' ' -f 1 /proc/uptime) s after its start"
if [ -n "$COMMAND" ]; then
	bash -c "$COMMAND"
	status=$?
else
	for s in $SUITES; do
		"$s"
	done
	"$CARREL" doctor
	rc=$?
	result doctor $rc "$("$CARREL" doctor 2>&1 | tail -n 1)"
	/usr/bin/python3 tests/leaks.py --expect-clean --wait 10 >/tmp/leaks.out 2>&1
	rc=$?
	[ $rc = 0 ] || cat /tmp/leaks.out
	result leaks $rc "$([ $rc = 0 ] && echo none || echo "status $rc")"
fi
echo "carrel-vm: status $status"
sync
exec busybox poweroff -f
