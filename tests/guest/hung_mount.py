"""A file system that hangs: FUSE whose server takes requests and never answers them.

A process that waits for such an answer cannot be killed. Only the standard library is here.
"""

import contextlib
import ctypes
import os
import pathlib
import platform
import struct
import threading

from guest_cluster import SONDE, NothingToSee

FINIT_MODULE = {"x86_64": 313, "aarch64": 273}
DEVICE = "/dev/fuse"
ABORT = 1 | 2  # MNT_FORCE | MNT_DETACH
# Of struct fuse_in_header: length, operation, number of the request.
IN = struct.Struct("<IIQ")
OUT = struct.Struct("<IiQ")
INIT = 26
# struct fuse_init_out: version 7.31, and limits.
INIT_ANSWER = struct.pack("<IIIIHHIIHHI7I", 7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1, 0, 0, 0, *[0] * 7)

_libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        raise NothingToSee(f"{what}: {os.strerror(ctypes.get_errno())}")


def load_fuse():
    if "\tfuse\n" not in pathlib.Path("/proc/filesystems").read_text():
        with open(f"{SONDE}/fuse.ko", "rb") as module:
            check(_libc.syscall(FINIT_MODULE[platform.machine()], module.fileno(), b"", 0), "load fuse.ko")
    if not os.path.exists(DEVICE):
        os.mknod(DEVICE, 0o20666, os.makedev(10, 229))


def serve(server):
    """Until the file system is gone."""
    with contextlib.suppress(OSError):
        while True:
            _, operation, number = IN.unpack_from(os.read(server, 1 << 20))
            if operation == INIT:
                os.write(server, OUT.pack(OUT.size + len(INIT_ANSWER), 0, number) + INIT_ANSWER)


@contextlib.contextmanager
def hung_mount(point, kind):
    """Mounts one, as the given type; whoever hangs in it then is free again at the end."""
    load_fuse()
    os.makedirs(point, exist_ok=True)
    server = os.open(DEVICE, os.O_RDWR)
    try:
        options = f"fd={server},rootmode=40000,user_id=0,group_id=0,allow_other"
        mounted = _libc.mount(b"hung", point.encode(), kind.encode(), 0, options.encode())
        check(mounted, f"mount {kind} at {point}")
        thread = threading.Thread(target=serve, args=[server])
        thread.start()
        try:
            yield
        finally:
            check(_libc.umount2(point.encode(), ABORT), f"unmount {point}")
            thread.join()
    finally:
        os.close(server)
