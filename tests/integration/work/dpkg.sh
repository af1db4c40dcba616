# SPDX-License-Identifier: Apache-2.0
dpkg -i /repo/tree_*.deb /repo/libutempter0_*.deb
tree --version
dpkg-query -W -f '${Status}\n' tree
find /usr -perm /6000 -printf '%m %u %g %p\n'
useradd -r worker
setpriv --reuid worker --regid worker --clear-groups id -un
chown worker:worker /srv
stat -c '%U:%G' /srv
