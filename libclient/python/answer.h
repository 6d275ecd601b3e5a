// Makes Python's objects of what libsonde answers: instances of the NamedTuples of sonde/query.py.
//
// A function that gives an empty Ref, or false, has set an exception. Texts that are not UTF-8 are
// shown with replacements, as they come from other programs.
//
// Thread safety: the caller holds the interpreter's lock.
#pragma once

#include <cstddef>

#include "libclient/python/check.h"
#include "libclient/python/python.h"
#include "libclient/sonde_query.h"

namespace sonde::python {

// The classes. Part of a Python object, which the interpreter fills with zeros before anything is
// called.
class Answers {
 public:
  // (Metric, Point, Series, News, Event, QueryError)
  bool Take(PyObject* classes);
  int Traverse(visitproc visit, void* arg) const;
  void Clear();

  Ref Metrics(const sonde_list_t& list) const;        // list[Metric]
  Ref AllSeries(const sonde_result_t& result) const;  // list[Series]
  Ref News(const sonde_result_t& news) const;         // News
  Ref Event(const sonde_event_t& event) const;        // Event
  // Raises QueryError.
  void Raise(int code, const char* text) const;

 private:
  enum Class { kMetric, kPoint, kSeries, kNews, kEvent, kError };
  static constexpr int kClasses = 6;

  // An instance with these values; an empty one where `values` is empty.
  Ref Make(Class of, const Ref& values) const;
  Ref Metric(const sonde_metric_info_t& info) const;
  Ref Series(const sonde_series_t& series) const;
  Ref Points(const sonde_series_t& series) const;

  PyObject* classes_[kClasses];
  newfunc new_tuple_;  // tuple.__new__, without the way through Python's calls
};

// As UTF-8, or with replacements; nullptr is empty.
Ref TextOf(const char* text);

// A tuple of these, empty if one of them is.
template <typename... Refs>
Ref TupleOf(const Refs&... items) {
  if (!(static_cast<bool>(items) && ...)) return {};
  return Ref(PyTuple_Pack(sizeof...(items), items.get()...));
}

}  // namespace sonde::python
