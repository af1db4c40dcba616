# SPDX-License-Identifier: Apache-2.0
# Every program that could make one root is tried; none may print 0
id -u
for program in su sudo pkexec newgrp; do
	command -v $program >/dev/null || continue
	timeout 5 $program root -c 'id -u' </dev/null || true
done
! passwd -d root
echo refused
