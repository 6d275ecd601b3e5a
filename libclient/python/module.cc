// The module sonde._sonde: libsonde for Python. The package in sonde/ adds what needs no speed.
#include <pthread.h>

#include <cmath>

#include "core/text/remark.h"
#include "libclient/python/check.h"
#include "libclient/python/metric.h"
#include "libclient/python/python.h"
#include "libclient/python/query.h"

namespace sonde::python {
namespace {

template <typename Function>
PyCFunction Cast(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyObject* Init(PyObject* /*module*/, PyObject* /*unused*/) {
  forked = false;
  const bool recorded = [] {
    const Unlocked others;
    return sonde_init() == SONDE_OK;
  }();
  return PyBool_FromLong(static_cast<long>(recorded));
}

PyObject* GetStatus(PyObject* /*module*/, PyObject* /*unused*/) {
  return PyUnicode_FromString(sonde_error());
}

PyObject* Finalize(PyObject* /*module*/, PyObject* /*unused*/) {
  sonde_finalize();
  Py_RETURN_NONE;
}

PyObject* Annotate(PyObject* /*module*/, PyObject* object) {
  Text text;
  if (!text.TakeAny(object, "the remark")) return nullptr;
  char remark[kMaxRemarkLength + 1];
  if (MakeRemark(text.view(), remark) == 0) Py_RETURN_NONE;
  AttachIfForked();
  sonde_annotate(remark);
  Py_RETURN_NONE;
}

PyObject* PhaseBegin(PyObject* /*module*/, PyObject* object) {
  Text name;
  if (!TakePhase(object, &name)) return nullptr;
  AttachIfForked();
  sonde_phase_begin(name.c_str());
  Py_RETURN_NONE;
}

PyObject* PhaseEnd(PyObject* /*module*/, PyObject* object) {
  Text name;
  if (!TakePhase(object, &name)) return nullptr;
  AttachIfForked();
  sonde_phase_end(name.c_str());
  Py_RETURN_NONE;
}

PyObject* Figure(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* const keywords[] = {"name", "value", "unit", nullptr};
  PyObject *given_name = nullptr, *given_value = nullptr, *given_unit = nullptr;
  Text name, unit;
  double value;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:figure", const_cast<char**>(keywords),
                                  &given_name, &given_value, &given_unit) == 0 ||
      !TakeName(given_name, "the name of a figure", kMaxNameLength, &name) ||
      !TakeNumber(given_value, "figure()", &value) || !TakeUnit(given_unit, &unit)) {
    return nullptr;
  }
  AttachIfForked();
  if (std::isfinite(value)) sonde_figure(name.c_str(), value, unit.c_str());
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"gauge", Cast(&MakeGauge), METH_VARARGS | METH_KEYWORDS,
     "gauge($module, /, name, unit=None, help=None, level=1, tags=None)\n--\n\n"
     "The gauge of this name and these tags: what is true now."},
    {"counter", Cast(&MakeCounter), METH_VARARGS | METH_KEYWORDS,
     "counter($module, /, name, unit=None, help=None, level=1, tags=None)\n--\n\n"
     "The counter of this name and these tags: what only grows."},
    {"histogram", Cast(&MakeHistogram), METH_VARARGS | METH_KEYWORDS,
     "histogram($module, /, name, unit=None, help=None, level=1, tags=None)\n--\n\n"
     "The histogram of this name and these tags: how values are distributed."},
    {"annotate", &Annotate, METH_O,
     "annotate($module, text, /)\n--\n\n"
     "A remark, shown on every plot at its time. What is longer than 192 bytes is cut."},
    {"phase_begin", &PhaseBegin, METH_O,
     "phase_begin($module, name, /)\n--\n\nA phase of the program begins."},
    {"phase_end", &PhaseEnd, METH_O, "phase_end($module, name, /)\n--\n\nIt ends."},
    {"figure", Cast(&Figure), METH_VARARGS | METH_KEYWORDS,
     "figure($module, /, name, value, unit=None)\n--\n\n"
     "A figure of merit, by which runs are compared. What is not finite is left out."},
    {"init", &Init, METH_NOARGS,
     "init($module, /)\n--\n\n"
     "Whether this process is recorded. Not needed: the first metric attaches the process."},
    {"status", &GetStatus, METH_NOARGS,
     "status($module, /)\n--\n\nHow this thread's last registration or call went: 'done', or why "
     "nothing is recorded."},
    {"finalize", &Finalize, METH_NOARGS,
     "finalize($module, /)\n--\n\n"
     "Ends the record of this process now instead of at its exit. Updates go nowhere after it."},
    {nullptr, nullptr, 0, nullptr}};

State* StateOf(PyObject* module) { return static_cast<State*>(PyModule_GetState(module)); }

int Execute(PyObject* module) {
  State* const state = StateOf(module);
  state->metrics = PyDict_New();
  return state->metrics != nullptr && AddTypes(module, state) && AddConnection(module) ? 0 : -1;
}

int Traverse(PyObject* module, visitproc visit, void* arg) {
  State* const state = StateOf(module);
  if (state == nullptr) return 0;
  Py_VISIT(state->metrics);
  for (PyObject* type : state->types) Py_VISIT(type);
  return 0;
}

int Clear(PyObject* module) {
  State* const state = StateOf(module);
  if (state == nullptr) return 0;
  Py_CLEAR(state->metrics);
  for (PyObject*& type : state->types) Py_CLEAR(type);
  return 0;
}

void Free(void* module) { Clear(static_cast<PyObject*>(module)); }

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(&Execute)}, {0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "sonde._sonde",
                          "libsonde for Python; use the package sonde.",
                          sizeof(State),
                          functions,
                          slots,
                          &Traverse,
                          &Clear,
                          &Free};

// By fork() itself, whoever calls it: os.fork, multiprocessing or a library.
__attribute__((constructor)) void WatchForks() {
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

}  // namespace
}  // namespace sonde::python

// NOLINTNEXTLINE(readability-identifier-naming): Python's name
PyMODINIT_FUNC PyInit__sonde() { return PyModuleDef_Init(&sonde::python::definition); }
