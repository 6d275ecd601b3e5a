// Python's header, restricted to what every release from 3.9 on has: one file serves them all.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#if !defined(Py_LIMITED_API) || Py_LIMITED_API != 0x03090000
#error "compile with -DPy_LIMITED_API=0x03090000"
#endif
