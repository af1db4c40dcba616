# SPDX-License-Identifier: Apache-2.0
# apt with a repository in a directory: setuid and setgid files, a group made by a postinst, a removal
export DEBIAN_FRONTEND=noninteractive
rm -f /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/repo ./' > /etc/apt/sources.list
apt-get update
apt-get install -y --no-install-recommends sudo cron tree
stat -c '%a %U %G' /usr/bin/sudo /usr/bin/crontab
getent group crontab | cut -d: -f1
tree --version
dpkg-query -W -f '${db:Status-Abbrev}\n' sudo
apt-get purge -y cron
! test -e /usr/bin/crontab
dpkg --audit
dpkg --verify
apt-get check -qq
echo complete
