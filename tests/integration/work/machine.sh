# SPDX-License-Identifier: Apache-2.0
# What looks at the machine works, and shows this sandbox
nproc >/dev/null
free -b | grep -q Mem
df / >/dev/null
uptime >/dev/null
top -bn1 >/dev/null
mount >/dev/null
cat /proc/cpuinfo /proc/meminfo /proc/loadavg /proc/stat /proc/self/cgroup /proc/self/mountinfo /etc/mtab /proc/filesystems >/dev/null
ps -eo comm=
