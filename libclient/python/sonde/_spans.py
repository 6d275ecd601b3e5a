"""What has a begin and an end: timers and phases, as context managers and as decorators."""

from __future__ import annotations

from functools import wraps
from time import perf_counter

from ._sonde import Counter, Histogram, histogram, phase_begin, phase_end

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing costs more than all the rest
    from types import TracebackType
    from typing import Any, Callable, Mapping, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

_COROUTINE = 0x80  # inspect.CO_COROUTINE


class _Span:
    """A context manager that is a decorator too; each call of the function is a span of its own."""

    __slots__ = ()

    def _another(self) -> _Span:
        raise NotImplementedError

    def __enter__(self) -> _Span:
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        raise NotImplementedError

    def __call__(self, function: _Function) -> _Function:
        if not callable(function):
            raise TypeError(f"expected a function to decorate, not {type(function).__name__}")
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _COROUTINE:

            @wraps(function)
            async def wrapped_coroutine(*args: Any, **kwargs: Any) -> Any:
                with self._another():
                    return await function(*args, **kwargs)

            return wrapped_coroutine  # type: ignore[return-value]

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._another():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


class Timer(_Span):
    """Gives its metric the seconds between its begin and its end. Made by timer().

    `seconds` is what the last span took. For one thread at a time; a decorated function may be
    called by many.
    """

    __slots__ = ("_begins", "_record", "metric", "seconds")

    def __init__(self, metric: Histogram | Counter) -> None:
        self.metric = metric
        self.seconds = 0.0
        self._begins: list[float] = []
        self._record = metric.add if isinstance(metric, Counter) else metric.observe

    def _another(self) -> Timer:
        return Timer(self.metric)

    def __enter__(self) -> Timer:
        self._begins.append(perf_counter())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.seconds = perf_counter() - self._begins.pop()
        self._record(self.seconds)


def timer(
    metric: Histogram | Counter | str,
    help: str | None = None,
    level: int = 1,
    tags: Mapping[str, str | int] | None = None,
) -> Timer:
    """Measures seconds, of a block or of each call of a function:

        with sonde.timer("read_seconds"):
            ...

        @sonde.timer("solve_seconds")
        def solve(): ...

    The seconds go to the histogram of that name, or to a histogram or counter made before.
    """
    if isinstance(metric, str):
        metric = histogram(metric, "seconds", help, level, tags)
    elif not isinstance(metric, (Histogram, Counter)):
        raise TypeError(
            "timer(): expected the name of a histogram, a histogram or a counter, "
            f"not {type(metric).__name__}"
        )
    elif help is not None or tags is not None or level != 1:
        raise TypeError("timer(): help, level and tags are expected with a name only")
    return Timer(metric)


class Phase(_Span):
    """A phase of the program from its begin to its end. Made by phase()."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def _another(self) -> Phase:
        return self

    def __enter__(self) -> Phase:
        phase_begin(self.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        phase_end(self.name)


def phase(name: str) -> Phase:
    """A phase of the program, shown as a band on every plot:

        with sonde.phase("solve"):
            ...

        @sonde.phase("read")
        def read(): ...
    """
    return Phase(name)
