"""sonde_query.h for ctypes: its structures and functions, name by name."""

from __future__ import annotations

import ctypes
import struct
from typing import Any


class Tag(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class MetricInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("unit", ctypes.c_char_p),
        ("help", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("level", ctypes.c_int),
        ("tags", ctypes.POINTER(Tag)),
        ("tag_count", ctypes.c_size_t),
    ]


class List(ctypes.Structure):
    _fields_ = [("metrics", ctypes.POINTER(MetricInfo)), ("metric_count", ctypes.c_size_t)]


class Filter(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_char_p),
        ("key", ctypes.c_char_p),
        ("value", ctypes.c_char_p),
        ("group_by", ctypes.c_int),
    ]


class Question(ctypes.Structure):
    _fields_ = [
        ("metric", ctypes.c_char_p),
        ("aggregator", ctypes.c_char_p),
        ("downsample", ctypes.c_char_p),
        ("filters", ctypes.POINTER(Filter)),
        ("filter_count", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("last_seconds", ctypes.c_double),
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
    ]


class Series(ctypes.Structure):
    _fields_ = [
        ("metric", ctypes.c_char_p),
        ("tags", ctypes.POINTER(Tag)),
        ("tag_count", ctypes.c_size_t),
        ("aggregated", ctypes.POINTER(ctypes.c_char_p)),
        ("aggregated_count", ctypes.c_size_t),
        ("points", ctypes.c_void_p),
        ("point_count", ctypes.c_size_t),
    ]


class Result(ctypes.Structure):
    _fields_ = [
        ("series", ctypes.POINTER(Series)),
        ("series_count", ctypes.c_size_t),
        ("nodes_answered", ctypes.c_uint32),
        ("nodes_expected", ctypes.c_uint32),
        ("late", ctypes.c_int),
        ("missed", ctypes.c_uint32),
        ("rows_only", ctypes.c_int),
    ]


class Event(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("is_true", ctypes.c_int),
        ("time_ns", ctypes.c_int64),
        ("value", ctypes.c_double),
        ("series", ctypes.POINTER(Series)),
    ]


POINT = struct.Struct("=qd")
PointsFn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Result))
WatchFn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Event))


def load() -> Any:
    """libsonde.so.1: the one that the package's extension has loaded, else the system's."""
    lib = ctypes.CDLL("libsonde.so.1")
    handle, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    question, pointer = ctypes.POINTER(Question), ctypes.POINTER
    signatures = {
        "sonde_strerror": (text, [number]),
        "sonde_query_open": (handle, [number, pointer(number)]),
        "sonde_query_close": (None, [handle]),
        "sonde_query_fd": (number, [handle]),
        "sonde_query_error": (text, [handle]),
        "sonde_query_period": (ctypes.c_double, [handle]),
        "sonde_query_list": (number, [handle, text, number, pointer(pointer(List))]),
        "sonde_list_free": (None, [pointer(List)]),
        "sonde_query_get": (number, [handle, question, number, pointer(pointer(Result))]),
        "sonde_result_free": (None, [pointer(Result)]),
        "sonde_query_alarm": (number, [handle, text, text, number]),
        "sonde_query_subscribe": (ctypes.c_uint64, [handle, question, PointsFn, handle]),
        "sonde_query_cancel": (number, [handle, ctypes.c_uint64]),
        "sonde_query_watch": (ctypes.c_uint64, [handle, text, number, WatchFn, handle]),
        "sonde_query_poll": (number, [handle, number]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib
