#include "libclient/python/check.h"

#include <cmath>
#include <limits>

#include "core/text/names.h"

namespace sonde::python {
namespace {

// The name of its type: "list".
Ref TypeName(PyObject* object) {
  return Ref(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
}

constexpr char kKeyExpected[] = "1 to 128 letters, digits or '_', the first no digit";
constexpr char kValueExpected[] = "1 to 128 bytes of text without control characters";
constexpr char kTagsExpected[] = "a dict such as {'kind': 'read'}";
constexpr char kUnitExpected[] =
    "a unit such as 'seconds', 'bytes' or '1', at most 128 bytes without control characters";
constexpr char kHelpExpected[] = "one line of at most 512 bytes without control characters";

}  // namespace

bool WrongType(const char* what, const char* expected, PyObject* object) {
  const Ref type = TypeName(object);
  if (type) PyErr_Format(PyExc_TypeError, "%s: expected %s, not %U", what, expected, type.get());
  return false;
}

bool WrongText(const char* what, PyObject* object, const char* expected) {
  PyErr_Format(PyExc_ValueError, "%s %R: expected %s", what, object, expected);
  return false;
}

Ref NewRef(PyObject* object) {
  Py_XINCREF(object);
  return Ref(object);
}

bool Text::Take(PyObject* object, const char* what) {
  if (!PyUnicode_Check(object)) return WrongType(what, "a str", object);
  bytes_ = Ref(PyUnicode_AsUTF8String(object));
  if (!bytes_ && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
    PyErr_Clear();
    return WrongText(what, object, "text that UTF-8 can express");
  }
  return View();
}

bool Text::TakeAny(PyObject* object, const char* what) {
  if (!PyUnicode_Check(object)) return WrongType(what, "a str", object);
  bytes_ = Ref(PyUnicode_AsEncodedString(object, "utf-8", "replace"));
  return View();
}

bool Text::View() {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (!bytes_ || PyBytes_AsStringAndSize(bytes_.get(), &data, &size) != 0) return false;
  view_ = std::string_view(data, static_cast<size_t>(size));
  return true;
}

bool Text::TakeWhole(PyObject* object, const char* what) {
  if (!Take(object, what)) return false;
  const bool whole = view_.find('\0') == std::string_view::npos;
  return whole || WrongText(what, object, "text without a NUL");
}

bool Text::TakeOptional(PyObject* object, const char* what) {
  return object == nullptr || object == Py_None || Take(object, what);
}

bool TakeName(PyObject* object, const char* what, size_t limit, Text* name) {
  if (!name->Take(object, what)) return false;
  if (names::IsMetricName(name->view()) && name->view().size() <= limit) return true;
  PyErr_Format(
      PyExc_ValueError,
      "%s %R: expected 1 to %zu letters, digits, '_', ':', '.' or '-', the first a letter, "
      "'_' or ':'",
      what, object, limit);
  return false;
}

bool TakeUnit(PyObject* object, Text* unit) {
  if (!unit->TakeOptional(object, "the unit")) return false;
  const bool good = unit->view().size() <= kMaxNameLength && names::IsPlainText(unit->view());
  return good || WrongText("the unit", object, kUnitExpected);
}

bool TakeHelp(PyObject* object, Text* help) {
  if (!help->TakeOptional(object, "the help")) return false;
  const bool good = help->view().size() <= kMaxTextLength && names::IsPlainText(help->view());
  return good || WrongText("the help", object, kHelpExpected);
}

bool TakePhase(PyObject* object, Text* name) {
  return name->Take(object, "the phase") &&
         (names::IsTagValue(name->view()) || WrongText("the phase", object, kValueExpected));
}

bool TakeLevel(PyObject* object, int* level) {
  *level = 1;
  if (object == nullptr || object == Py_None) return true;
  if (!PyLong_Check(object)) return WrongType("the level", "an int from 1 to 4", object);
  const long value = PyLong_AsLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) PyErr_Clear();  // too large
  // 0 is the default, as in C.
  if (value < 0 || value > 4) return WrongText("the level", object, "1 to 4");
  *level = value == 0 ? 1 : static_cast<int>(value);
  return true;
}

bool TakeNumber(PyObject* object, const char* what, double* number) {
  *number = PyFloat_AsDouble(object);
  if (*number != -1.0 || PyErr_Occurred() == nullptr) return true;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
  PyErr_Clear();
  return WrongType(what, "a number", object);
}

bool TakeTime(PyObject* object, int64_t* time_ns) {
  static_assert(sizeof(long long) == sizeof(int64_t));
  if (!PyLong_Check(object)) {
    return WrongType("the time", "an int, nanoseconds since 1970 as of time.time_ns()", object);
  }
  *time_ns = PyLong_AsLongLong(object);
  return *time_ns != -1 || PyErr_Occurred() == nullptr;
}

bool TakeTimeout(PyObject* object, int* timeout_ms) {
  *timeout_ms = -1;
  if (object == Py_None) return true;
  double seconds;
  if (!TakeNumber(object, "the timeout", &seconds)) return false;
  if (std::isnan(seconds)) return WrongText("the timeout", object, "seconds, or None for ever");
  // Up to the next: who waits a little must not wait for nothing.
  const double ms = seconds * 1000 + 0.999;
  constexpr int kMost = std::numeric_limits<int>::max();
  *timeout_ms = ms < 0 ? 0 : ms < kMost ? static_cast<int>(ms) : kMost;
  return true;
}

bool Tags::TakePair(PyObject* pair, size_t i) {
  if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
    return WrongType("a tag", kTagsExpected, pair);
  PyObject* const key = PyTuple_GetItem(pair, 0);
  PyObject* const value = PyTuple_GetItem(pair, 1);
  if (key == nullptr || value == nullptr || !keys_[i].Take(key, "the key of a tag")) return false;
  if (keys_[i].view() == client::kTaskTag) {
    return WrongText("the tag", key, "another key: every series has this one, with the rank");
  }
  if (!names::IsTagKey(keys_[i].view())) return WrongText("the tag", key, kKeyExpected);
  if (!PyUnicode_Check(value) && !PyLong_Check(value)) {
    return WrongType("the value of a tag", "a str or an int", value);
  }
  const Ref text(PyObject_Str(value));
  if (!text || !values_[i].Take(text.get(), "the value of a tag")) return false;
  if (!names::IsTagValue(values_[i].view())) {
    return WrongText("the value of a tag", value, kValueExpected);
  }
  raw_[i] = {keys_[i].c_str(), values_[i].c_str()};
  Ref entry(PyTuple_Pack(2, key, text.get()));
  if (!entry) return false;
  // Steals the reference, also when it fails.
  return PyList_SetItem(pairs_.get(), static_cast<Py_ssize_t>(i), entry.Release()) == 0;
}

bool Tags::Take(PyObject* mapping) {
  size_ = 0;
  pairs_ = Ref(PyTuple_New(0));
  if (mapping == nullptr || mapping == Py_None) return static_cast<bool>(pairs_);
  const Ref items(PyMapping_Items(mapping));
  if (!items) {
    // An object that is no mapping has no items().
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
    PyErr_Clear();
    return WrongType("the tags", kTagsExpected, mapping);
  }
  const Py_ssize_t count = PyList_Size(items.get());
  if (count > static_cast<Py_ssize_t>(client::kMaxAppTags)) {
    PyErr_Format(PyExc_ValueError, "%zd tags: expected at most %zu", count, client::kMaxAppTags);
    return false;
  }
  pairs_ = Ref(PyList_New(count));
  if (!pairs_) return false;
  size_ = static_cast<size_t>(count);
  for (size_t i = 0; i < size_; ++i) {
    if (!TakePair(PyList_GetItem(items.get(), static_cast<Py_ssize_t>(i)), i)) return false;
  }
  if (PyList_Sort(pairs_.get()) != 0) return false;
  pairs_ = Ref(PyList_AsTuple(pairs_.get()));
  return static_cast<bool>(pairs_);
}

}  // namespace sonde::python
