"""Opens UDP sockets bound to interfaces and hands them to a program, as systemd does.

hand-over.py INTERFACE,... PORT,... PROGRAM ARGUMENT...
"""

import fcntl
import os
import socket
import sys

FIRST = 3
APART = 100

names, opened = [], []
for interface in sys.argv[1].split(","):
    for port in sys.argv[2].split(","):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
        one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        one.bind(("0.0.0.0", int(port)))
        # Out of the way of the numbers that they get at the end.
        opened.append(fcntl.fcntl(one.fileno(), fcntl.F_DUPFD, APART))
        names.append(interface)
        one.close()
for index, descriptor in enumerate(opened):
    os.dup2(descriptor, FIRST + index, inheritable=True)
    os.close(descriptor)
handed = {
    "LISTEN_PID": str(os.getpid()),
    "LISTEN_FDS": str(len(opened)),
    "LISTEN_FDNAMES": ":".join(names),
}
os.execve(sys.argv[3], sys.argv[3:], {**os.environ, **handed})
