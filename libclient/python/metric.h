// The types Gauge, Counter and Histogram, and the functions that make metrics.
//
// Metrics of the same name and tags are one object, as they are one pointer in C. Objects
// live as long as the module; they hold no reference that could close a cycle.
//
// Thread safety: the caller holds the interpreter's lock. It is given up while a metric is
// registered, which may wait for the daemon.
#pragma once

#include "libclient/python/python.h"
#include "libclient/sonde.h"

namespace sonde::python {

enum class Kind { kGauge, kCounter, kHistogram };
inline constexpr int kKinds = 3;

// The module's state.
struct State {
  PyObject* types[kKinds];
  PyObject* metrics;  // dict: (name, tags) -> metric
};

// The three types, as attributes of the module too.
bool AddTypes(PyObject* module, State* state);

// gauge(name, unit=None, help=None, level=1, tags=None) and the same for others.
PyObject* MakeGauge(PyObject* module, PyObject* args, PyObject* kwargs);
PyObject* MakeCounter(PyObject* module, PyObject* args, PyObject* kwargs);
PyObject* MakeHistogram(PyObject* module, PyObject* args, PyObject* kwargs);

// A forked child attaches to the daemon at its first update: most children only run another
// program and need no daemon; the others need not call anything.
extern bool forked;  // set in the child
void AttachChild();
inline void AttachIfForked() {
  if (__builtin_expect(static_cast<long>(forked), 0) != 0) AttachChild();
}

}  // namespace sonde::python
