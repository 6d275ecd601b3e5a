// A question as Python code gives it, checked, as libsonde takes it.
//
// Texts are not checked beyond what C needs: what a metric, an aggregator or a filter may be
// called, the daemon knows, and says what is wrong.
//
// Thread safety: the caller holds the interpreter's lock.
#pragma once

#include <cstddef>

#include "libclient/python/check.h"
#include "libclient/python/python.h"
#include "libclient/sonde_query.h"

namespace sonde::python {

class Question {
 public:
  Question() = default;
  Question(const Question&) = delete;  // it points into itself
  Question& operator=(const Question&) = delete;

  // Of Take: metric, aggregator, downsample, rate, tags, filters, by, explicit_tags.
  static constexpr size_t kWords = 8;

  // False, with an exception, if one of them is wrong.
  bool Take(PyObject* const* words);
  // Seconds, and seconds since 1970, or None.
  bool TakeRange(PyObject* last, PyObject* start, PyObject* end);
  // Valid as long as this object.
  const sonde_question_t* raw() const { return &raw_; }

 private:
  // What a question may have; with SONDE_BY_HOST and SONDE_BY_TASK, which Python does not use, two
  // less.
  static constexpr size_t kMaxFilters = 64;

  bool TakeRate(PyObject* rate);
  bool TakeTags(PyObject* tags);
  bool TakeFilters(PyObject* filters);
  bool TakeKeys(PyObject* by);
  bool TakeKey(PyObject* key);
  // The text as C has it, nullptr with an exception if it is none.
  const char* Keep(PyObject* text, const char* what);
  // False, with an exception, if there is no room for it or a text is nullptr.
  bool Add(const char* type, const char* key, const char* value, bool group_by);

  sonde_question_t raw_ = {};
  Text metric_, aggregator_, downsample_;
  Ref texts_;                            // a list of what filters_ point to
  sonde_filter_t filters_[kMaxFilters];  // only what is used is ever touched
};

}  // namespace sonde::python
