// Questions of a running C++ program about the data of its own step: sonde_query.h with owners.
//
//   sonde::Query query;                       // connects; see ok()
//   sonde::Question question("heat_residual");
//   question.Aggregator("max").Last(60);
//   for (const auto& series : query.Get(question)) ...
//
//   query.Watch("heat_residual max > 10 for 3s", [](const sonde::Event& event) { ... });
//   while (working) query.Poll(0);
//
// C++17, header only; nothing throws except the standard library when memory runs out. A call that
// fails gives an empty answer, and code() and error() of the query say why. Callbacks run only
// within Poll(), in its thread, and must not throw, for C code calls them. They may ask further
// questions, but must not destroy the query. A Query is used by one thread at a time.
#ifndef SONDE_QUERY_HPP
#define SONDE_QUERY_HPP

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sonde_query.h"

namespace sonde {

// What to ask for. Keeps its own copies of all texts.
class Question {
 public:
  explicit Question(std::string metric) : metric_(std::move(metric)) {}

  // sum, avg, min, max, count, none, p5, p50, p75, p90, p95, p99 or p999.
  Question& Aggregator(std::string name) { return Set(aggregator_, std::move(name)); }
  // "10s-avg".
  Question& Downsample(std::string text) { return Set(downsample_, std::move(text)); }
  // Change per second.
  Question& Rate() { return Flag(SONDE_RATE); }
  Question& ByHost() { return Flag(SONDE_BY_HOST); }
  Question& ByTask() { return Flag(SONDE_BY_TASK); }
  // Only series whose tag is one of a|b|c.
  Question& Tag(std::string key, std::string value) {
    return Filter("literal_or", std::move(key), std::move(value));
  }
  Question& Filter(std::string type, std::string key, std::string value, bool group_by = false) {
    filters_.push_back({std::move(type), std::move(key), std::move(value), group_by});
    return *this;
  }
  Question& Last(double seconds) {
    last_seconds_ = seconds;
    return *this;
  }
  // Nanoseconds since 1970 UTC; 0: the step's start, and now.
  Question& Between(int64_t start_ns, int64_t end_ns) {
    start_ns_ = start_ns;
    end_ns_ = end_ns;
    return *this;
  }

  // The question for sonde_query.h; `filters` and this object must outlive its use.
  sonde_question_t Get(std::vector<sonde_filter_t>& filters) const {
    filters.clear();
    for (const OneFilter& f : filters_) {
      filters.push_back({f.type.c_str(), f.key.c_str(), f.value.c_str(), f.group_by ? 1 : 0});
    }
    sonde_question_t question = {};
    question.metric = metric_.c_str();
    question.aggregator = aggregator_.empty() ? nullptr : aggregator_.c_str();
    question.downsample = downsample_.empty() ? nullptr : downsample_.c_str();
    question.filters = filters.data();
    question.filter_count = filters.size();
    question.flags = flags_;
    question.last_seconds = last_seconds_;
    question.start_ns = start_ns_;
    question.end_ns = end_ns_;
    return question;
  }

 private:
  struct OneFilter {
    std::string type, key, value;
    bool group_by;
  };
  Question& Set(std::string& what, std::string text) {
    what = std::move(text);
    return *this;
  }
  Question& Flag(int flag) {
    flags_ |= flag;
    return *this;
  }

  std::string metric_, aggregator_, downsample_;
  std::vector<OneFilter> filters_;
  int flags_ = 0;
  double last_seconds_ = 0;
  int64_t start_ns_ = 0;
  int64_t end_ns_ = 0;
};

// An answer: a range of sonde_series_t.
class Answer {
 public:
  Answer() = default;
  explicit Answer(sonde_result_t* result) : result_(result, &sonde_result_free) {}

  const sonde_series_t* begin() const { return result_ ? result_->series : nullptr; }
  const sonde_series_t* end() const { return result_ ? begin() + result_->series_count : nullptr; }
  size_t size() const { return result_ ? result_->series_count : 0; }
  bool empty() const { return size() == 0; }
  // If fewer answered than expected, the part of the others is missing.
  uint32_t nodes_answered() const { return result_ ? result_->nodes_answered : 0; }
  uint32_t nodes_expected() const { return result_ ? result_->nodes_expected : 0; }
  // Nodes are missing in some of the values, and could not be asked for theirs.
  bool rows_only() const { return result_ && result_->rows_only != 0; }

 private:
  std::unique_ptr<sonde_result_t, void (*)(sonde_result_t*)> result_{nullptr, &sonde_result_free};
};

// The step's metrics: a range of sonde_metric_info_t.
class Listing {
 public:
  Listing() = default;
  explicit Listing(sonde_list_t* list) : list_(list, &sonde_list_free) {}

  const sonde_metric_info_t* begin() const { return list_ ? list_->metrics : nullptr; }
  const sonde_metric_info_t* end() const { return list_ ? begin() + list_->metric_count : nullptr; }
  size_t size() const { return list_ ? list_->metric_count : 0; }

 private:
  std::unique_ptr<sonde_list_t, void (*)(sonde_list_t*)> list_{nullptr, &sonde_list_free};
};

using Event = sonde_event_t;

class Query {
 public:
  using OnValues = std::function<void(const sonde_result_t& news)>;
  using OnEvent = std::function<void(const Event& event)>;

  explicit Query(int timeout_ms = 1000) : query_(sonde_query_open(timeout_ms, &code_)) {}
  ~Query() { sonde_query_close(query_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Whether the query is open: there is a daemon to ask.
  bool ok() const { return query_ != nullptr; }
  // The result of the last call: SONDE_OK or another code of sonde_query.h; the same in words.
  int code() const { return code_; }
  std::string error() const {
    return query_ == nullptr ? sonde_strerror(code_) : sonde_query_error(query_);
  }
  // The descriptor to watch for reading, for a program that also waits for other things.
  int fd() const { return sonde_query_fd(query_); }
  double period() const { return sonde_query_period(query_); }

  Answer Get(const Question& question, int timeout_ms = 5000) {
    std::vector<sonde_filter_t> filters;
    const sonde_question_t asked = question.Get(filters);
    sonde_result_t* result = nullptr;
    code_ = sonde_query_get(query_, &asked, timeout_ms, &result);
    return Answer(result);
  }
  // The series of one metric, or of all.
  Listing List(const std::string& metric = "", int timeout_ms = 5000) {
    sonde_list_t* list = nullptr;
    code_ = sonde_query_list(query_, metric.empty() ? nullptr : metric.c_str(), timeout_ms, &list);
    return Listing(list);
  }

  // Makes the step raise an alarm when the rule holds; false if the call failed.
  bool Alarm(const std::string& name, const std::string& rule, int timeout_ms = 5000) {
    code_ = sonde_query_alarm(query_, name.c_str(), rule.c_str(), timeout_ms);
    return code_ == SONDE_OK;
  }

  // All three give an id for Cancel, or 0 if they failed.
  uint64_t Subscribe(const Question& question, OnValues callback) {
    std::vector<sonde_filter_t> filters;
    const sonde_question_t asked = question.Get(filters);
    Callback& kept = Keep();
    kept.values = std::move(callback);
    return Started(sonde_query_subscribe(
        query_, &asked,
        [](void* data, const sonde_result_t* news) { static_cast<Callback*>(data)->values(*news); },
        &kept));
  }
  uint64_t Watch(const std::string& condition, OnEvent callback, bool tell_end = false) {
    Callback& kept = Keep();
    kept.event = std::move(callback);
    return Started(sonde_query_watch(query_, condition.c_str(), tell_end ? 1 : 0, &Tell, &kept));
  }
  uint64_t WatchIf(const sonde_condition_t& condition, OnEvent callback, bool tell_end = false) {
    Callback& kept = Keep();
    kept.event = std::move(callback);
    return Started(sonde_query_watch_if(query_, &condition, tell_end ? 1 : 0, &Tell, &kept));
  }
  void Cancel(uint64_t id) { code_ = sonde_query_cancel(query_, id); }

  // Waits for news (-1: for ever) and calls back. Gives the number of callbacks; negative: failed.
  int Poll(int timeout_ms) {
    const int calls = sonde_query_poll(query_, timeout_ms);
    code_ = calls < 0 ? -calls : SONDE_OK;
    return calls;
  }

 private:
  // Lives as long as the query: a callback that is cancelled may still be running.
  struct Callback {
    OnValues values;
    OnEvent event;
  };
  static void Tell(void* data, const sonde_event_t* event) {
    static_cast<Callback*>(data)->event(*event);
  }
  Callback& Keep() {
    callbacks_.emplace_back();
    return callbacks_.back();
  }
  uint64_t Started(uint64_t id) {
    code_ = id != 0 ? SONDE_OK : SONDE_INVALID;
    if (id == 0) callbacks_.pop_back();
    return id;
  }

  int code_ = SONDE_OK;
  sonde_query_t* query_;
  std::list<Callback> callbacks_;
};

}  // namespace sonde

#endif
