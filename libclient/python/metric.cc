#include "libclient/python/metric.h"

#include "libclient/python/check.h"

namespace sonde::python {

bool forked = false;

void AttachChild() {
  forked = false;
  sonde_init();
}

namespace {

struct Metric {
  PyObject_HEAD sonde_metric_t* metric;  // nullptr if it is not recorded
  PyObject* status;                      // why it is not recorded, a str
  int level;
  PyObject* name;
  PyObject* unit;
  PyObject* help;
  PyObject* tags;  // ((key, value), ...)
};

Metric* Self(PyObject* self) { return reinterpret_cast<Metric*>(self); }

// The metric to be updated, nullptr if there is nothing to do.
sonde_metric_t* Target(PyObject* self) {
  sonde_metric_t* const metric = Self(self)->metric;
  if (metric != nullptr) AttachIfForked();
  return metric;
}

// --- Updates

PyObject* Set(PyObject* self, PyObject* value) {
  double number;
  if (!TakeNumber(value, "Gauge.set()", &number)) return nullptr;
  sonde_set(Target(self), number);
  Py_RETURN_NONE;
}

// A value and its time.
struct Timed {
  double value;
  int64_t time_ns;
};
bool TakeTimed(PyObject* args, const char* name, const char* function, Timed* timed) {
  PyObject *value = nullptr, *time = nullptr;
  return PyArg_UnpackTuple(args, name, 2, 2, &value, &time) != 0 &&
         TakeNumber(value, function, &timed->value) && TakeTime(time, &timed->time_ns);
}

PyObject* SetAt(PyObject* self, PyObject* args) {
  Timed timed;
  if (!TakeTimed(args, "set_at", "Gauge.set_at()", &timed)) return nullptr;
  sonde_set_at(Target(self), timed.value, timed.time_ns);
  Py_RETURN_NONE;
}

PyObject* SetPast(PyObject* self, PyObject* args) {
  Timed timed;
  if (!TakeTimed(args, "set_past", "Gauge.set_past()", &timed)) return nullptr;
  sonde_set_past(Target(self), timed.value, timed.time_ns);
  Py_RETURN_NONE;
}

PyObject* GaugeAdd(PyObject* self, PyObject* value) {
  double number;
  if (!TakeNumber(value, "Gauge.add()", &number)) return nullptr;
  sonde_add(Target(self), number);
  Py_RETURN_NONE;
}

// With an argument or without: no parser of arguments is as quick as looking.
PyObject* CounterAdd(PyObject* self, PyObject* args) {
  double number = 1;
  const Py_ssize_t count = PyTuple_Size(args);
  if (count > 1) {
    PyErr_Format(PyExc_TypeError, "Counter.add(): expected at most one number, not %zd", count);
    return nullptr;
  }
  if (count == 1 && !TakeNumber(PyTuple_GetItem(args, 0), "Counter.add()", &number)) return nullptr;
  sonde_add(Target(self), number);
  Py_RETURN_NONE;
}

PyObject* Observe(PyObject* self, PyObject* value) {
  double number;
  if (!TakeNumber(value, "Histogram.observe()", &number)) return nullptr;
  sonde_observe(Target(self), number);
  Py_RETURN_NONE;
}

// --- What a metric tells of itself

PyObject* GetTags(PyObject* self, void* /*closure*/) {
  Ref tags(PyDict_New());
  const Py_ssize_t count = PyTuple_Size(Self(self)->tags);
  for (Py_ssize_t i = 0; tags && i < count; ++i) {
    PyObject* const pair = PyTuple_GetItem(Self(self)->tags, i);
    if (PyDict_SetItem(tags.get(), PyTuple_GetItem(pair, 0), PyTuple_GetItem(pair, 1)) != 0) {
      return nullptr;
    }
  }
  return tags.Release();
}

PyObject* GetRecorded(PyObject* self, void* /*closure*/) {
  return PyBool_FromLong(static_cast<long>(Self(self)->metric != nullptr));
}

PyObject* GetStatus(PyObject* self, void* /*closure*/) {
  return NewRef(Self(self)->status).Release();
}

PyObject* Repr(PyObject* self) {
  const Ref type(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "__name__"));
  const Ref tags(GetTags(self, nullptr));
  if (!type || !tags) return nullptr;
  return PyUnicode_FromFormat("<sonde.%U %U %R>", type.get(), Self(self)->name, tags.get());
}

// Another process, such as a pool's worker, gets its own metric of the same name.
PyObject* Reduce(PyObject* self, PyObject* /*unused*/) {
  const Ref module(PyImport_ImportModule("sonde._sonde"));
  const Ref maker(module
                      ? PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "_maker")
                      : nullptr);
  const Ref function(maker ? PyObject_GetAttr(module.get(), maker.get()) : nullptr);
  const Ref tags(GetTags(self, nullptr));
  if (!function || !tags) return nullptr;
  const Metric* const metric = Self(self);
  return Py_BuildValue("O(OOOiO)", function.get(), metric->name, metric->unit, metric->help,
                       metric->level, tags.get());
}

// --- The types

void Dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  Metric* const metric = Self(self);
  for (PyObject* object :
       {metric->status, metric->name, metric->unit, metric->help, metric->tags}) {
    Py_XDECREF(object);
  }
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* New(PyTypeObject* type, PyObject* /*args*/, PyObject* /*kwargs*/) {
  const Ref maker(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "_maker"));
  if (maker) PyErr_Format(PyExc_TypeError, "make one with sonde.%U(name)", maker.get());
  return nullptr;
}

PyMemberDef members[] = {
    {"name", T_OBJECT, offsetof(Metric, name), READONLY, nullptr},
    {"unit", T_OBJECT, offsetof(Metric, unit), READONLY, "None if it has none."},
    {"help", T_OBJECT, offsetof(Metric, help), READONLY, "None if it has none."},
    {"level", T_INT, offsetof(Metric, level), READONLY,
     "The telemetry level from which it is recorded."},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef getters[] = {
    {"tags", &GetTags, nullptr, "A dict; changing it changes nothing.", nullptr},
    {"recorded", &GetRecorded, nullptr, "Whether updates have an effect.", nullptr},
    {"status", &GetStatus, nullptr, "Why it is not recorded, or 'done'.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef gauge_methods[] = {
    {"set", &Set, METH_O,
     "set($self, value, /)\n--\n\nWhat is true now. What is not finite is recorded as missing."},
    {"set_at", &SetAt, METH_VARARGS,
     "set_at($self, value, time_ns, /)\n--\n\n"
     "A value measured at a time of its own, as of time.time_ns()."},
    {"set_past", &SetPast, METH_VARARGS,
     "set_past($self, value, time_ns, /)\n--\n\n"
     "A value that it had at a time that has passed, recorded at that time's tick."},
    {"add", &GaugeAdd, METH_O, "add($self, value, /)\n--\n\nAdds a number of either sign."},
    {"__reduce__", &Reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef counter_methods[] = {
    {"add", &CounterAdd, METH_VARARGS,
     "add($self, value=1, /)\n--\n\nCounts. What is negative or not a number is ignored."},
    {"__reduce__", &Reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef histogram_methods[] = {
    {"observe", &Observe, METH_O,
     "observe($self, value, /)\n--\n\nGives it a value. NaN is ignored."},
    {"__reduce__", &Reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

struct TypeDescription {
  const char* name;
  const char* maker;
  const char* format;  // of its maker's arguments
  const char* doc;
  PyMethodDef* methods;
};

const TypeDescription descriptions[kKinds] = {
    {"sonde.Gauge", "gauge", "O|OOOO:gauge",
     "What is true now: gauge.set(value). Made by sonde.gauge().", gauge_methods},
    {"sonde.Counter", "counter", "O|OOOO:counter",
     "What only grows: counter.add(). Made by sonde.counter().", counter_methods},
    {"sonde.Histogram", "histogram", "O|OOOO:histogram",
     "How values are distributed: histogram.observe(value). Made by sonde.histogram().",
     histogram_methods}};

Ref MakeType(const TypeDescription& description) {
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(description.doc)},
                         {Py_tp_new, reinterpret_cast<void*>(&New)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&Dealloc)},
                         {Py_tp_repr, reinterpret_cast<void*>(&Repr)},
                         {Py_tp_methods, description.methods},
                         {Py_tp_members, members},
                         {Py_tp_getset, getters},
                         {0, nullptr}};
  PyType_Spec spec = {description.name, sizeof(Metric), 0, Py_TPFLAGS_DEFAULT, slots};
  Ref type(PyType_FromSpec(&spec));
  const Ref maker(PyUnicode_FromString(description.maker));
  if (!type || !maker || PyObject_SetAttrString(type.get(), "_maker", maker.get()) != 0) return {};
  return type;
}

// --- Making metrics

struct Arguments {
  Text name, unit, help;
  Tags tags;
  int level = 1;
  PyObject* objects[3] = {nullptr, Py_None, Py_None};  // name, unit, help as given

  bool Take(PyObject* args, PyObject* kwargs, const char* format, size_t limit) {
    static const char* const keywords[] = {"name", "unit", "help", "level", "tags", nullptr};
    PyObject *given_level = nullptr, *given_tags = nullptr;
    return PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(keywords),
                                       &objects[0], &objects[1], &objects[2], &given_level,
                                       &given_tags) != 0 &&
           TakeName(objects[0], "the name of a metric", limit, &name) &&
           TakeUnit(objects[1], &unit) && TakeHelp(objects[2], &help) &&
           TakeLevel(given_level, &level) && tags.Take(given_tags);
  }
};

using Register = sonde_metric_t* (*)(const char*, const char*, const char*, int, const sonde_tag_t*,
                                     size_t);
constexpr Register kRegister[kKinds] = {&sonde_gauge, &sonde_counter, &sonde_histogram};

Ref MakeMetric(const State& state, Kind kind, const Arguments& a) {
  auto* const type = reinterpret_cast<PyTypeObject*>(state.types[static_cast<int>(kind)]);
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  Ref made(allocate(type, 0));
  if (!made) return made;
  Metric* const metric = Self(made.get());
  metric->level = a.level;
  metric->name = NewRef(a.objects[0]).Release();
  metric->unit = NewRef(a.objects[1]).Release();
  metric->help = NewRef(a.objects[2]).Release();
  metric->tags = NewRef(a.tags.pairs()).Release();
  forked = false;  // registering attaches a child as well
  {
    const Unlocked others;
    metric->metric = kRegister[static_cast<int>(kind)](
        a.name.c_str(), a.unit.c_str(), a.help.c_str(), a.level, a.tags.raw(), a.tags.size());
  }
  metric->status = PyUnicode_FromString(sonde_error());
  if (metric->status == nullptr) return {};
  return made;
}

// The existing metric of this name and these tags; an error if it has another type.
PyObject* Found(const State& state, Kind kind, PyObject* metric, PyObject* name) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(metric)) == state.types[static_cast<int>(kind)]) {
    return NewRef(metric).Release();
  }
  const Ref is(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(metric)), "_maker"));
  if (is) {
    PyErr_Format(PyExc_ValueError, "%R with these tags is a %U: expected another name for a %s",
                 name, is.get(), descriptions[static_cast<int>(kind)].maker);
  }
  return nullptr;
}

PyObject* Make(PyObject* module, Kind kind, PyObject* args, PyObject* kwargs) {
  const auto* const state = static_cast<State*>(PyModule_GetState(module));
  Arguments a;
  const size_t limit = kind == Kind::kHistogram ? client::kMaxHistogramName : kMaxNameLength;
  if (!a.Take(args, kwargs, descriptions[static_cast<int>(kind)].format, limit)) return nullptr;
  const Ref key(PyTuple_Pack(2, a.objects[0], a.tags.pairs()));
  if (!key) return nullptr;
  PyObject* known = PyDict_GetItemWithError(state->metrics, key.get());
  if (known != nullptr) return Found(*state, kind, known, a.objects[0]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  Ref made = MakeMetric(*state, kind, a);
  if (!made) return nullptr;
  // Another thread may have been quicker while the lock was given up.
  known = PyDict_GetItemWithError(state->metrics, key.get());
  if (known != nullptr) return Found(*state, kind, known, a.objects[0]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return PyDict_SetItem(state->metrics, key.get(), made.get()) == 0 ? made.Release() : nullptr;
}

}  // namespace

bool AddTypes(PyObject* module, State* state) {
  for (int i = 0; i < kKinds; ++i) {
    state->types[i] = MakeType(descriptions[i]).Release();
    if (state->types[i] == nullptr) return false;
    // Takes a reference when it succeeds.
    Py_INCREF(state->types[i]);
    if (PyModule_AddObject(module, descriptions[i].name + sizeof("sonde"), state->types[i]) != 0) {
      Py_DECREF(state->types[i]);
      return false;
    }
  }
  return true;
}

PyObject* MakeGauge(PyObject* module, PyObject* args, PyObject* kwargs) {
  return Make(module, Kind::kGauge, args, kwargs);
}
PyObject* MakeCounter(PyObject* module, PyObject* args, PyObject* kwargs) {
  return Make(module, Kind::kCounter, args, kwargs);
}
PyObject* MakeHistogram(PyObject* module, PyObject* args, PyObject* kwargs) {
  return Make(module, Kind::kHistogram, args, kwargs);
}

}  // namespace sonde::python
