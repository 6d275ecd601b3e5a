#include "libclient/python/answer.h"

#include <cstring>

namespace sonde::python {
namespace {

Ref Boolean(int value) { return Ref(PyBool_FromLong(value != 0 ? 1 : 0)); }
Ref Seconds(int64_t time_ns) {
  return Ref(PyFloat_FromDouble(static_cast<double>(time_ns) * 1e-9));
}

// What comes again in many answers is one object.
Ref NameOf(const char* text) {
  PyObject* name = TextOf(text).Release();
  if (name != nullptr) PyUnicode_InternInPlace(&name);
  return Ref(name);
}

Ref TagsOf(const sonde_tag_t* tags, size_t count) {
  Ref made(PyDict_New());
  for (size_t i = 0; made && i < count; ++i) {
    const Ref key = NameOf(tags[i].key), value = TextOf(tags[i].value);
    if (!key || !value || PyDict_SetItem(made.get(), key.get(), value.get()) != 0) return {};
  }
  return made;
}

// A list of what `make` makes of each.
template <typename T, typename Make>
Ref ListOf(const T* items, size_t count, Make make) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; list && i < count; ++i) {
    Ref made = make(items[i]);
    if (!made || PyList_SetItem(list.get(), static_cast<Py_ssize_t>(i), made.Release()) != 0) {
      return {};
    }
  }
  return list;
}

// How the tuple type makes its instances. Releases before 3.10 tell it only of types that were made
// at run time, so one of those is asked, which has it from tuple.
newfunc NewTuple() {
  PyType_Slot slots[] = {{0, nullptr}};
  PyType_Spec spec = {"sonde._sonde.Tuple", 0, 0, Py_TPFLAGS_DEFAULT, slots};
  const Ref bases(PyTuple_Pack(1, &PyTuple_Type));
  const Ref type(bases ? PyType_FromSpecWithBases(&spec, bases.get()) : nullptr);
  if (!type) return nullptr;
  return reinterpret_cast<newfunc>(
      PyType_GetSlot(reinterpret_cast<PyTypeObject*>(type.get()), Py_tp_new));
}

}  // namespace

Ref TextOf(const char* text) {
  if (text == nullptr) text = "";
  return Ref(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(strlen(text)), "replace"));
}

bool Answers::Take(PyObject* classes) {
  if (!PyTuple_Check(classes) || PyTuple_Size(classes) != kClasses) {
    return WrongType("the classes", "a tuple of six", classes);
  }
  for (int i = 0; i < kClasses; ++i) {
    PyObject* const given = PyTuple_GetItem(classes, i);
    auto* const base = reinterpret_cast<PyTypeObject*>(
        i == kError ? PyExc_Exception : reinterpret_cast<PyObject*>(&PyTuple_Type));
    // The memory of an instance is laid out as its base has it.
    if (!PyType_Check(given) ||
        PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(given), base) == 0) {
      return WrongType("the classes", "NamedTuples and an exception", given);
    }
    classes_[i] = NewRef(given).Release();
  }
  new_tuple_ = NewTuple();
  return new_tuple_ != nullptr;
}

int Answers::Traverse(visitproc visit, void* arg) const {
  for (PyObject* one : classes_) Py_VISIT(one);
  return 0;
}

void Answers::Clear() {
  for (PyObject*& one : classes_) Py_CLEAR(one);
}

Ref Answers::Make(Class of, const Ref& values) const {
  const Ref arguments = TupleOf(values);
  if (!arguments) return {};
  return Ref(new_tuple_(reinterpret_cast<PyTypeObject*>(classes_[of]), arguments.get(), nullptr));
}

Ref Answers::Metric(const sonde_metric_info_t& info) const {
  return Make(kMetric,
              TupleOf(NameOf(info.name), NameOf(info.unit), TextOf(info.help), NameOf(info.type),
                      Ref(PyLong_FromLong(info.level)), TagsOf(info.tags, info.tag_count)));
}

Ref Answers::Points(const sonde_series_t& series) const {
  return ListOf(series.points, series.point_count, [this](const sonde_point_t& point) {
    return Make(kPoint, TupleOf(Seconds(point.time_ns), Ref(PyFloat_FromDouble(point.value))));
  });
}

Ref Answers::Series(const sonde_series_t& series) const {
  const Ref keys = ListOf(series.aggregated, series.aggregated_count, &NameOf);
  const Ref aggregated(keys ? PyList_AsTuple(keys.get()) : nullptr);
  if (!aggregated) return {};
  return Make(kSeries, TupleOf(NameOf(series.metric), TagsOf(series.tags, series.tag_count),
                               aggregated, Points(series)));
}

Ref Answers::Metrics(const sonde_list_t& list) const {
  return ListOf(list.metrics, list.metric_count,
                [this](const sonde_metric_info_t& info) { return Metric(info); });
}

Ref Answers::AllSeries(const sonde_result_t& result) const {
  return ListOf(result.series, result.series_count,
                [this](const sonde_series_t& series) { return Series(series); });
}

Ref Answers::News(const sonde_result_t& news) const {
  return Make(
      kNews, TupleOf(AllSeries(news), Boolean(news.late), Ref(PyLong_FromUnsignedLong(news.missed)),
                     Ref(PyLong_FromUnsignedLong(news.nodes_answered)),
                     Ref(PyLong_FromUnsignedLong(news.nodes_expected)), Boolean(news.rows_only)));
}

Ref Answers::Event(const sonde_event_t& event) const {
  const sonde_series_t& series = *event.series;
  return Make(kEvent, TupleOf(Ref(PyLong_FromUnsignedLongLong(event.id)), Boolean(event.is_true),
                              Seconds(event.time_ns), Ref(PyFloat_FromDouble(event.value)),
                              NameOf(series.metric), TagsOf(series.tags, series.tag_count)));
}

void Answers::Raise(int code, const char* text) const {
  const Ref arguments = TupleOf(Ref(PyLong_FromLong(code)), TextOf(text));
  const Ref error(arguments ? PyObject_CallObject(classes_[kError], arguments.get()) : nullptr);
  if (error) PyErr_SetObject(classes_[kError], error.get());
}

}  // namespace sonde::python
