# SPDX-License-Identifier: Apache-2.0
# Names of users, groups, services and hosts; locales; time zones
getent passwd root | cut -d: -f1,3
getent passwd 0 | cut -d: -f1
getent group root | cut -d: -f1
getent services https | tr -s ' '
getent protocols tcp | cut -d' ' -f1
getent hosts localhost | tr -s ' ' | cut -d' ' -f2
id -un
LANG=C.UTF-8 locale charmap
TZ=America/New_York date -d @0 +%H:%M%z
TZ=Asia/Kolkata date -d @0 +%H:%M%z
/usr/bin/python3 -c 'import zoneinfo, datetime as d; print(d.datetime.fromtimestamp(0, zoneinfo.ZoneInfo("Europe/Paris")).isoformat())'
hostname
cat /etc/hostname
getent hosts "$(hostname)" >/dev/null && echo resolves
locale -a | grep -q '^C' && echo locales
