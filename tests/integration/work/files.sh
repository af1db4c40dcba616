# SPDX-License-Identifier: Apache-2.0
# Files of every kind
mkfifo fifo
(echo through > fifo &)
cat fifo
: > index
ln index hard
stat -c '%h links' hard
ln -s /etc/passwd link
truncate -s 1G sparse
echo "$(du -k sparse | cut -f1) KiB of 1 GiB"
flock lock echo locked
touch -d @0 old
stat -c %Y old
mkdir -p "$(printf 'd/%.0s' $(seq 100))"
find d -type d | wc -l
cp -a /usr/include/linux tree
tar cf - tree | tar xf - -C d
diff -r tree d/tree && echo same
rm -rf d tree
cp /usr/bin/env env2
mv env2 /usr/local/bin/env3
env3 echo moved
chown 1000:1000 index
chmod 4755 index
stat -c '%u:%g %a' index
/usr/bin/python3 - <<'END'
import ctypes, os
assert ctypes.CDLL(None).inotify_init() > 0
os.memfd_create("m")
os.eventfd(0)
open("original", "w").write("some bytes")
source, target = os.open("original", os.O_RDONLY), os.open("copy", os.O_RDWR | os.O_CREAT)
assert os.copy_file_range(source, target, 10) == 10
os.posix_fallocate(target, 0, 4096)
os.setxattr("copy", "user.x", b"y")
os.rename("copy", "renamed")
print(os.getxattr("renamed", "user.x").decode(), os.stat("renamed").st_size)
END
