// Checks the arguments of Python code by the rules of core/text/names.h, and turns them into the C
// strings that libsonde takes.
//
// The checks do not depend on whether there is telemetry, so that a program that runs without it
// runs with it. A check that fails sets a Python exception that says what was expected: TypeError
// for another type, ValueError for a text that is not allowed.
//
// Thread safety: the caller holds the interpreter's lock.
#pragma once

#include <cstddef>
#include <string_view>

#include "libclient/layout.h"
#include "libclient/python/python.h"
#include "libclient/sonde.h"

namespace sonde::python {

// Owns a reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  ~Ref() { Py_XDECREF(object_); }
  Ref(Ref&& other) noexcept : object_(other.Release()) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* const old = object_;
    object_ = other.Release();
    Py_XDECREF(old);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;

  PyObject* get() const { return object_; }
  PyObject* Release() {
    PyObject* const object = object_;
    object_ = nullptr;
    return object;
  }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

Ref NewRef(PyObject* object);

// Lets other threads run Python while this one waits.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() { PyEval_RestoreThread(state_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  friend class Locked;
  PyThreadState* state_;
};

// Runs Python in the midst of that, when libsonde calls back. The call comes in the thread that
// waits, so its own state goes on, in whichever interpreter it belongs to: PyGILState_Ensure()
// would take the main interpreter's.
class Locked {
 public:
  explicit Locked(Unlocked* unlocked) : unlocked_(unlocked) {
    PyEval_RestoreThread(unlocked_->state_);
  }
  ~Locked() { unlocked_->state_ = PyEval_SaveThread(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Unlocked* const unlocked_;
};

// Set an exception that says what was expected, and give false.
bool WrongType(const char* what, const char* expected, PyObject* object);
bool WrongText(const char* what, PyObject* object, const char* expected);

// A str as UTF-8.
class Text {
 public:
  // False, with an exception, if it is no str. `what` begins the message: "the unit".
  bool Take(PyObject* object, const char* what);
  // As Take, but a character that UTF-8 cannot express, as in names of files, becomes a '?'.
  bool TakeAny(PyObject* object, const char* what);
  // As Take, but None stays empty.
  bool TakeOptional(PyObject* object, const char* what);
  // As Take, but a text with a NUL, which would end the C string, is refused.
  bool TakeWhole(PyObject* object, const char* what);
  PyObject* bytes() const { return bytes_.get(); }  // borrowed; what the others point to
  std::string_view view() const { return view_; }
  const char* c_str() const { return view_.data(); }  // nullptr if empty

 private:
  bool View();

  Ref bytes_;
  std::string_view view_;
};

// `limit` in bytes.
bool TakeName(PyObject* object, const char* what, size_t limit, Text* name);
bool TakeUnit(PyObject* object, Text* unit);
bool TakeHelp(PyObject* object, Text* help);
bool TakePhase(PyObject* object, Text* name);
bool TakeLevel(PyObject* object, int* level);
bool TakeNumber(PyObject* object, const char* what, double* number);
bool TakeTime(PyObject* object, int64_t* time_ns);
// Seconds to wait at most, or None for ever, as -1. What is too long for an int becomes its
// maximum.
bool TakeTimeout(PyObject* object, int* timeout_ms);

// The tags of a metric.
class Tags {
 public:
  // From a mapping or None.
  bool Take(PyObject* mapping);
  const sonde_tag_t* raw() const { return raw_; }
  size_t size() const { return size_; }
  // ((key, value), ...), sorted: a key of dictionaries.
  PyObject* pairs() const { return pairs_.get(); }

 private:
  bool TakePair(PyObject* pair, size_t i);

  Text keys_[client::kMaxAppTags];
  Text values_[client::kMaxAppTags];
  sonde_tag_t raw_[client::kMaxAppTags] = {};
  size_t size_ = 0;
  Ref pairs_;
};

}  // namespace sonde::python
