// The type Connection: the functions of sonde_query.h for sonde/query.py, which has the class Query
// around it.
//
// Connection(timeout, classes) opens a connection; `classes` are those of the answers (answer.h).
// The methods give Python's objects and raise QueryError. Without telemetry and after close() their
// answers are empty. Arguments are checked first, with telemetry and without.
//
// Callbacks stay in Python: poll() collects the news, and query.py calls back with them when
// libsonde has returned. A connection holds no callback. So a callback that refers to its Query
// closes a cycle of ordinary Python objects, which the garbage collector knows how to break.
//
// Thread safety: the caller holds the interpreter's lock, and the lock of its Query, for libsonde
// takes one thread at a time. The interpreter's lock is given up while libsonde may wait. A second
// thread that comes meanwhile gets a RuntimeError. The same thread may come again: while poll()
// makes objects, the garbage collector may run a destructor that asks, or closes. What it closes is
// closed when the outer call ends.
#pragma once

#include "libclient/python/python.h"

namespace sonde::python {

// The type, as an attribute of the module.
bool AddConnection(PyObject* module);

}  // namespace sonde::python
