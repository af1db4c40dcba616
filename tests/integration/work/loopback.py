# SPDX-License-Identifier: Apache-2.0
"""Servers and sockets of one's own, and no way out."""
import asyncio
import http.server
import socket
import threading
import urllib.request


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, *args):
        pass


async def child():
    process = await asyncio.create_subprocess_exec("echo", "async", stdout=asyncio.subprocess.PIPE)
    print((await process.communicate())[0].decode().strip())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_address[1]}/").read().decode())
one, other = socket.socketpair()
one.send(b"pair")
print(other.recv(10).decode())
datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagrams.bind(("::1", 0))
datagrams.sendto(b"udp6", datagrams.getsockname())
print(datagrams.recv(10).decode())
listener = socket.socket(socket.AF_UNIX)
listener.bind("/tmp/socket")
listener.listen()
socket.socket(socket.AF_UNIX).connect("/tmp/socket")
print("unix")
asyncio.run(child())
try:
    socket.create_connection(("192.0.2.1", 80), 2)
except OSError:
    print("no way out")
