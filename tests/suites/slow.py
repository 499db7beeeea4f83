#!/usr/bin/env python3
"""A bad network between two hosts: `slow.py PID READY`, in the network of the one host; a process
of that id lives in the other's. READY is a file that is made when packets travel.

Each host has an address on each of two links. Packets are late, each by another time, so that they
overtake one another; some are lost, some come twice. What that is to TCP is the kernel's own doing.
It takes `/dev/net/tun` and no module of the kernel, as netem does. USR1 cuts the second link, USR2
mends it.
"""

import fcntl
import heapq
import os
import pathlib
import random
import selectors
import signal
import struct
import subprocess
import sys
import time

# The name of a link, the address of this host on it, that of the other host.
LINKS = (("clients", "10.77.1.1", "10.77.1.2"), ("server", "10.77.2.1", "10.77.2.2"))
DELAY_SECONDS = 0.004
JITTER_SECONDS = 0.006
LOST_ONE_IN = 70
TWICE_ONE_IN = 200
PACKET_BYTES_MAX = 1 << 16
# What is on its way; more are lost, as in a router.
PACKETS_MAX = 4096
SEED = 8

# Source: linux/if_tun.h
TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000


def interface(name: str) -> int:
    """A new one, whose packets are what its descriptor reads and writes."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    request = struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI)
    fcntl.ioctl(descriptor, TUNSETIFF, request)
    return descriptor


def link(name: str, here: str, there: str, pid: str) -> tuple[int, int]:
    """The two ends of a link between this host and that of the process."""
    run = lambda *words: subprocess.run(words, check=True)  # noqa: E731
    ends = interface(f"{name}0"), interface(f"{name}1")
    run("ip", "link", "set", f"{name}1", "netns", pid)
    for host, device, own, peer in (
        ([], f"{name}0", here, there),
        (["nsenter", f"--net=/proc/{pid}/ns/net"], f"{name}1", there, here),
    ):
        run(*host, "ip", "address", "add", own, "peer", peer, "dev", device)
        run(*host, "ip", "link", "set", device, "up")
    return ends


class Wire:
    def __init__(self, links: list[tuple[int, int]]):
        self.dice = random.Random(SEED)
        self.cut: set[int] = set()
        self.on_the_way: list[tuple[float, int, int, bytes]] = []
        self.count = 0
        self.selector = selectors.DefaultSelector()
        for ends in links:
            for end, other in (ends, ends[::-1]):
                self.selector.register(end, selectors.EVENT_READ, other)

    def take(self, end: int, other: int) -> None:
        try:
            packet = os.read(end, PACKET_BYTES_MAX)
        except BlockingIOError:
            return
        times = 2 if self.dice.randrange(TWICE_ONE_IN) == 0 else 1
        for _ in range(times):
            late = DELAY_SECONDS + self.dice.random() * JITTER_SECONDS
            lost = self.dice.randrange(LOST_ONE_IN) == 0 or len(self.on_the_way) >= PACKETS_MAX
            if not lost and other not in self.cut:
                self.count += 1
                arrives = time.monotonic() + late
                heapq.heappush(self.on_the_way, (arrives, self.count, other, packet))

    def give(self) -> float | None:
        """Whatever has arrived; how long the next one takes."""
        while self.on_the_way:
            left = self.on_the_way[0][0] - time.monotonic()
            if left > 0:
                return left
            _, _, end, packet = heapq.heappop(self.on_the_way)
            try:
                os.write(end, packet)
            except (BlockingIOError, OSError):
                continue
        return None

    def run(self) -> None:
        while True:
            for key, _ in self.selector.select(self.give()):
                self.take(key.fd, key.data)


def main(pid: str, ready: str) -> None:
    links = [link(*one, pid) for one in LINKS]
    wire = Wire(links)
    signal.signal(signal.SIGUSR1, lambda *_: wire.cut.update(links[1]))
    signal.signal(signal.SIGUSR2, lambda *_: wire.cut.clear())
    pathlib.Path(ready).touch()
    wire.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
