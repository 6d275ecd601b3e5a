"""What crosses the loopback, heard by root."""

import contextlib
import re
import socket
import struct
import threading


class Tap:
    """What TCP carries over the loopback until stop(): as much as MOST bytes."""

    MOST = 256 << 20
    IPV4 = 0x0800  # each packet once: as it comes in
    SO_RCVBUFFORCE = 33  # of asm-generic/socket.h, which the module socket does not have

    def __init__(self):
        self._packets, self._size, self._over = [], 0, threading.Event()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(self.IPV4))
        self._socket.setsockopt(socket.SOL_SOCKET, self.SO_RCVBUFFORCE, 64 << 20)
        self._socket.bind(("lo", self.IPV4))
        self._socket.settimeout(0.1)
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self):
        with contextlib.suppress(BlockingIOError):  # all is read that had come before stop()
            while self._size < self.MOST:
                if self._over.is_set():
                    self._socket.settimeout(0)
                with contextlib.suppress(TimeoutError):
                    self._packets.append(self._socket.recv(1 << 17))
                    self._size += len(self._packets[-1])

    def end(self):
        self._over.set()
        self._thread.join()

    def stop(self):
        """Gives the streams, each with the ports of its ends."""
        self.end()
        self._socket.close()
        pieces = {}
        for packet in self._packets:
            if packet[9] == socket.IPPROTO_TCP:
                tcp = packet[(packet[0] & 15) * 4 :]
                source, to, number = struct.unpack_from("!HHI", tcp)
                pieces.setdefault((source, to), {})[number] = tcp[(tcp[12] >> 4) * 4 :]
        return {ends: b"".join(data for _, data in sorted(found.items())) for ends, found in pieces.items()}


def credentials_in(streams):
    """Of munge, in the messages of Slurm's that tell the nodes of a step with telemetry."""
    told = [data for data in streams if b"telemetry-rendezvous" in data]
    return {one.decode() for data in told for one in re.findall(rb"MUNGE:[A-Za-z0-9+/=]+:", data)}
