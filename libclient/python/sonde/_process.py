"""The number of this process among those of its task, so that their series can be told apart.

A task is one process, 0, unless it starts others, such as the workers of a pool. Each of these has
the lowest number that no living process of the task has, so numbers do not grow with the number of
workers that come and go. The kernel keeps them: a number is an abstract socket that is bound, and
free again when its process is gone, however that ended.
"""

from __future__ import annotations

import errno
import os
import sys

import _socket
import _thread

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing costs more than all the rest
    from typing import Any, Callable

_MOST = 512  # processes of a node that the daemon knows at a time
# What libsonde makes the rank of: processes that have these in common are of one task.
_OF_A_TASK = ("SLURM_PROCID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")

_lock = _thread.allocate_lock()  # guards the next two
_number: int | None = None  # None: not asked for yet
_held: Any = None  # the socket
_forked = False


def number() -> int:
    """0 for the task's own process; also where there is no telemetry, or no number is free."""
    global _number, _held
    with _lock:
        if _number is None:
            _number, _held = _take(1 if _is_child() else 0)
        return _number


def when_forked(call: Callable[[], None]) -> None:
    """Has it called in every forked child, which has no number yet."""
    os.register_at_fork(after_in_child=call)


def claim(what: str) -> Any:
    """A socket that holds a name of this step on this node, for as long as it is open.

    None if another process has the name; OSError if there are none, as without telemetry.
    """
    socket = os.environ.get("SONDE_SOCKET")
    if not socket:
        raise OSError("there is no telemetry")
    held = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    try:
        held.bind(f"\0{socket}/{what}".encode())
    except OSError as error:
        held.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return held


def _take(first: int) -> tuple[int, Any]:
    task = "/".join(os.environ.get(variable, "") for variable in _OF_A_TASK)
    try:
        for number in range(first, _MOST):
            held = claim(f"{task}/{number}")
            if held is not None:
                return number, held
    except OSError:
        pass
    return 0, None


def _is_child() -> bool:
    """Whether another process of Python's in this task has started this one."""
    processes = sys.modules.get("multiprocessing.process")
    return _forked or (processes is not None and processes.parent_process() is not None)


def _after_fork() -> None:
    global _lock, _number, _held, _forked
    _lock = _thread.allocate_lock()  # a thread of the parent's may have it
    if _held is not None:
        _held.close()  # it is the parent's
    _number, _held, _forked = None, None, True


when_forked(_after_fork)
