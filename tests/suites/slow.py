#!/usr/bin/env python3
"""A slow network between two TCP addresses of this machine: `slow.py LISTEN_PORT TO_PORT`.

What comes is cut into packets, at random places. Each arrives after the delay of the way, and
all in order; after a lost one they wait for it to be sent again. It takes no rights and no
module of the kernel, as netem does.
"""

import asyncio
import contextlib
import random
import sys

DELAY_SECONDS = 0.005
JITTER_SECONDS = 0.005
LOST_ONE_IN = 100
SENT_AGAIN_SECONDS = 0.2
PACKET_BYTES_MAX = 1400
# What is on its way in one direction; beyond it the sender waits.
PACKETS_MAX = 256
SEED = 8


async def take(reader: asyncio.StreamReader, on_the_way: asyncio.Queue, dice: random.Random):
    """Cuts into packets and says when each arrives; an empty one is the end."""
    loop = asyncio.get_running_loop()
    due = 0.0
    while True:
        data = b""
        with contextlib.suppress(ConnectionError):
            data = await reader.read(PACKETS_MAX * PACKET_BYTES_MAX)
        ended = not data
        while data or ended:
            delay = DELAY_SECONDS + dice.random() * JITTER_SECONDS
            if dice.randrange(LOST_ONE_IN) == 0:
                delay += SENT_AGAIN_SECONDS
            due = max(due, loop.time() + delay)
            size = dice.randint(1, PACKET_BYTES_MAX)
            await on_the_way.put((due, data[:size]))
            if ended:
                return
            data = data[size:]


async def give(on_the_way: asyncio.Queue, writer: asyncio.StreamWriter):
    while True:
        due, packet = await on_the_way.get()
        await asyncio.sleep(due - asyncio.get_running_loop().time())
        if not packet:
            break
        writer.write(packet)
        await writer.drain()
    writer.write_eof()


async def direction(reader, writer, dice: random.Random):
    on_the_way: asyncio.Queue = asyncio.Queue(PACKETS_MAX)
    with contextlib.suppress(OSError):
        await asyncio.gather(take(reader, on_the_way, dice), give(on_the_way, writer))


async def main(listen: int, to: int) -> None:
    dice = random.Random(SEED)

    async def connection(reader, writer):
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", to)
        ways = [
            asyncio.ensure_future(direction(reader, there_writer, dice)),
            asyncio.ensure_future(direction(there_reader, writer, dice)),
        ]
        await asyncio.wait(ways)
        for end in (writer, there_writer):
            end.close()

    server = await asyncio.start_server(connection, "127.0.0.1", listen)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
