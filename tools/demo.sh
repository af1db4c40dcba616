#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# demo.sh - `make run`: a Python program in a sandbox, its result, and what isolated it
set -eu
carrel=$1
echo "\$ carrel run --receipt -- python3 -c '...'"
exec "$carrel" run --receipt --memory 256m --timeout 30 -- python3 -c '
import os, platform, socket
print("hello from", platform.node(), "as uid", os.getuid(), "with", len([p for p in os.listdir("/proc") if p.isdigit()]), "processes")
print("files of root:", " ".join(sorted(os.listdir("/"))))
open("/root/note", "w").write("written inside\n")
try:
    socket.create_connection(("192.0.2.1", 80), timeout=1)
except OSError as e:
    print("network:", e.strerror)
'
