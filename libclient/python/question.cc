#include "libclient/python/question.h"

#include <cmath>

namespace sonde::python {
namespace {

constexpr char kFilterExpected[] = "(type, tag, pattern), such as ('wildcard', 'host', 'n*')";
constexpr char kKeysExpected[] = "the key of a tag or several, such as ('host', 'task')";

// An iterator; without one an exception says what was expected.
Ref IteratorOf(PyObject* object, const char* what, const char* expected) {
  Ref iterator(PyObject_GetIter(object));
  if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    WrongType(what, expected, object);
  }
  return iterator;
}

// Most questions have none.
bool IsEmptyTuple(PyObject* object) {
  return PyTuple_CheckExact(object) && PyTuple_Size(object) == 0;
}

bool TakeMoment(PyObject* object, const char* what, int64_t* time_ns) {
  *time_ns = 0;
  if (object == Py_None) return true;
  double seconds;
  if (!TakeNumber(object, what, &seconds)) return false;
  const double time = seconds * 1e9;
  constexpr double kEnd = 9.2e18;  // of what 64 bits hold
  // Not a number compares with nothing.
  if (!(std::fabs(time) < kEnd)) return WrongText(what, object, "seconds since 1970, or None");
  *time_ns = static_cast<int64_t>(time);
  return true;
}

}  // namespace

bool Question::Take(PyObject* const* words) {
  const int explicit_tags = PyObject_IsTrue(words[7]);
  if (explicit_tags < 0 || !metric_.TakeWhole(words[0], "the metric") ||
      !aggregator_.TakeWhole(words[1], "the aggregator") ||
      !downsample_.TakeWhole(words[2], "the downsample") || !TakeRate(words[3]) ||
      !TakeTags(words[4]) || !TakeFilters(words[5]) || !TakeKeys(words[6])) {
    return false;
  }
  raw_.metric = metric_.c_str();
  raw_.aggregator = aggregator_.c_str();
  raw_.downsample = downsample_.c_str();
  raw_.filters = filters_;
  if (explicit_tags != 0) raw_.flags |= SONDE_EXPLICIT_TAGS;
  return true;
}

bool Question::TakeRange(PyObject* last, PyObject* start, PyObject* end) {
  if (last != Py_None && !TakeNumber(last, "last", &raw_.last_seconds)) return false;
  if (!(raw_.last_seconds >= 0)) return WrongText("last", last, "seconds, 0 or more, or None");
  return TakeMoment(start, "start", &raw_.start_ns) && TakeMoment(end, "end", &raw_.end_ns);
}

// By what it equals, as a dict would: 1 is True.
bool Question::TakeRate(PyObject* rate) {
  if (rate == Py_False) return true;
  struct Choice {
    PyObject* word;
    int flags;
  };
  const Ref counter(PyUnicode_InternFromString("counter")),
      drop(PyUnicode_InternFromString("drop"));
  if (!counter || !drop) return false;
  const Choice choices[] = {{Py_False, 0},
                            {Py_True, SONDE_RATE},
                            {counter.get(), SONDE_RATE | SONDE_RATE_COUNTER},
                            {drop.get(), SONDE_RATE | SONDE_RATE_DROP}};
  for (const Choice& choice : choices) {
    const int same = PyObject_RichCompareBool(rate, choice.word, Py_EQ);
    if (same < 0) return false;
    if (same == 0) continue;
    raw_.flags |= choice.flags;
    return true;
  }
  PyErr_SetString(PyExc_ValueError, "rate: expected True, False, \"counter\" or \"drop\"");
  return false;
}

bool Question::TakeTags(PyObject* tags) {
  if (tags == Py_None) return true;
  const int some = PyObject_IsTrue(tags);
  if (some <= 0) return some == 0;
  const Ref items(PyMapping_Items(tags));
  if (!items) {
    // An object that is no mapping has no items().
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
    PyErr_Clear();
    return WrongType("the tags", "a dict such as {'host': 'n1|n2'}", tags);
  }
  const Py_ssize_t count = PyList_Size(items.get());
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const pair = PyList_GetItem(items.get(), i);
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
      return WrongType("a tag", "a key and a value", pair);
    }
    const char* const key = Keep(PyTuple_GetItem(pair, 0), "the key of a tag");
    if (key == nullptr ||
        !Add("literal_or", key, Keep(PyTuple_GetItem(pair, 1), "the value of a tag"), false)) {
      return false;
    }
  }
  return true;
}

bool Question::TakeFilters(PyObject* filters) {
  if (IsEmptyTuple(filters)) return true;
  const Ref iterator = IteratorOf(filters, "the filters", "a list of (type, tag, pattern)");
  if (!iterator) return false;
  for (;;) {
    const Ref filter(PyIter_Next(iterator.get()));
    if (!filter) return PyErr_Occurred() == nullptr;
    const Ref parts(PySequence_Tuple(filter.get()));
    if (!parts && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      return WrongType("a filter", kFilterExpected, filter.get());
    }
    if (!parts) return false;
    if (PyTuple_Size(parts.get()) != 3) return WrongText("a filter", filter.get(), kFilterExpected);
    const char* const type = Keep(PyTuple_GetItem(parts.get(), 0), "the type of a filter");
    if (type == nullptr) return false;
    const char* const key = Keep(PyTuple_GetItem(parts.get(), 1), "the tag of a filter");
    if (key == nullptr ||
        !Add(type, key, Keep(PyTuple_GetItem(parts.get(), 2), "the pattern of a filter"), false)) {
      return false;
    }
  }
}

bool Question::TakeKeys(PyObject* by) {
  if (PyUnicode_Check(by)) return TakeKey(by);
  if (IsEmptyTuple(by)) return true;
  const Ref iterator = IteratorOf(by, "by", kKeysExpected);
  if (!iterator) return false;
  for (;;) {
    const Ref key(PyIter_Next(iterator.get()));
    if (!key) return PyErr_Occurred() == nullptr;
    if (!TakeKey(key.get())) return false;
  }
}

bool Question::TakeKey(PyObject* key) {
  return Add("wildcard", Keep(key, "a key of by"), "*", true);
}

const char* Question::Keep(PyObject* object, const char* what) {
  Text text;
  if (object == nullptr || !text.TakeWhole(object, what)) return nullptr;
  if (!texts_) texts_ = Ref(PyList_New(0));
  if (!texts_ || PyList_Append(texts_.get(), text.bytes()) != 0) return nullptr;
  return text.c_str();
}

bool Question::Add(const char* type, const char* key, const char* value, bool group_by) {
  if (key == nullptr || value == nullptr) return false;
  if (raw_.filter_count == kMaxFilters) {
    PyErr_Format(PyExc_ValueError, "tags, filters and by: expected at most %zu of them together",
                 kMaxFilters);
    return false;
  }
  filters_[raw_.filter_count++] = {type, key, value, group_by ? 1 : 0};
  return true;
}

}  // namespace sonde::python
