// libsonde for C++17: an application's own metrics in the record of its job step.
//
//   #include <sonde.hpp>
//
//   sonde::Gauge residual("heat_residual", "1", "Largest change of a cell");
//   sonde::Counter reads("heat_reads_total", "1", "Files read", {{"kind", "restart"}});
//   ...
//   residual.Set(r);
//   reads.Add();
//
// A thin layer over sonde.h, which says what names, units, levels and tags may be, and what
// threads, signal handlers and forked children may do; docs/client.md says what happens to the
// values. Header-only: a program links libsonde (pkg-config: sonde) and nothing else.
//
// Metrics are handles, as cheap to copy as a pointer: copies are the same metric, and so are
// metrics of the same name and tags. None has to be closed. Without telemetry, and for a metric
// that was refused, every update does nothing; status() tells why. Nothing here throws.
#ifndef SONDE_HPP
#define SONDE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "sonde.h"

namespace sonde {

// A text as sonde.h takes it, from a literal or from a std::string that outlives the call.
class Text {
 public:
  Text() = default;
  Text(const char* text) : text_(text) {}
  // A template, so that {"a", "b"} is never taken for a string between two pointers.
  template <typename String, std::enable_if_t<std::is_same_v<String, std::string>, int> = 0>
  Text(const String& text) : text_(text.c_str()) {}
  const char* c_str() const { return text_; }

 private:
  const char* text_ = nullptr;
};

// As in {{"kind", "read"}, {"file", name}}.
struct Tag {
  Text key;
  Text value;
};
using TagList = std::initializer_list<Tag>;

namespace detail {

constexpr std::size_t kMaxTags = 7;

// The common part of all kinds of metrics.
class Handle {
 public:
  // The result of making the metric, a code of sonde.h; sonde_strerror() gives it in words, and
  // Error() in more words until the thread's next call.
  int status() const { return status_; }
  // Whether updates have an effect.
  explicit operator bool() const { return metric_ != nullptr; }
  sonde_metric_t* get() const { return metric_; }

 protected:
  using Register = sonde_metric_t*(const char*, const char*, const char*, int, const sonde_tag_t*,
                                   std::size_t);

  Handle() = default;
  Handle(Register* make, Text name, Text unit, Text help, TagList tags, int level) {
    // One tag more than is allowed: libsonde then refuses the tags for their number.
    sonde_tag_t raw[kMaxTags + 1];
    std::size_t count = 0;
    for (const Tag& tag : tags) {
      if (count == kMaxTags + 1) break;
      raw[count++] = {tag.key.c_str(), tag.value.c_str()};
    }
    metric_ = make(name.c_str(), unit.c_str(), help.c_str(), level, raw, count);
    status_ = sonde_status();
  }

 private:
  sonde_metric_t* metric_ = nullptr;
  int status_ = SONDE_OFF;
};

}  // namespace detail

// A value as it is now. Level 0 is the default, 1. A metric made without arguments does nothing.
class Gauge : public detail::Handle {
 public:
  Gauge() = default;
  explicit Gauge(Text name, Text unit = {}, Text help = {}, TagList tags = {}, int level = 0)
      : Handle(&sonde_gauge, name, unit, help, tags, level) {}

  void Set(double value) const { sonde_set(get(), value); }
  // A value and the time of its measurement. Feed a gauge by this or by Set(), not by both.
  void SetAt(double value, std::chrono::system_clock::time_point time) const {
    using std::chrono::duration_cast;
    using std::chrono::nanoseconds;
    sonde_set_at(get(), value, duration_cast<nanoseconds>(time.time_since_epoch()).count());
  }
  // A value that it had at a time that has passed, recorded at that time's tick.
  void SetPast(double value, std::chrono::system_clock::time_point time) const {
    using std::chrono::duration_cast;
    using std::chrono::nanoseconds;
    sonde_set_past(get(), value, duration_cast<nanoseconds>(time.time_since_epoch()).count());
  }
  // Adds a number of either sign.
  void Add(double value) const { sonde_add(get(), value); }
};

// A sum that only grows. Negative values and NaN are ignored.
class Counter : public detail::Handle {
 public:
  Counter() = default;
  explicit Counter(Text name, Text unit = {}, Text help = {}, TagList tags = {}, int level = 0)
      : Handle(&sonde_counter, name, unit, help, tags, level) {}

  void Add(double value = 1) const { sonde_add(get(), value); }
};

// The distribution of values.
class Histogram : public detail::Handle {
 public:
  Histogram() = default;
  explicit Histogram(Text name, Text unit = {}, Text help = {}, TagList tags = {}, int level = 0)
      : Handle(&sonde_histogram, name, unit, help, tags, level) {}

  void Observe(double value) const { sonde_observe(get(), value); }
};

// Gives a histogram, or a counter of seconds, the seconds of a block of code:
//
//   const sonde::ScopedTimer timer(read_seconds);
//
// The timer does not read the clock where nothing is recorded.
class ScopedTimer {
 public:
  explicit ScopedTimer(Histogram histogram) : histogram_(histogram), begin_(Now(histogram)) {}
  explicit ScopedTimer(Counter counter) : counter_(counter), begin_(Now(counter)) {}
  ~ScopedTimer() { Stop(); }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

  // Ends the timing before the block ends.
  void Stop() {
    if (!histogram_ && !counter_) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    histogram_.Observe(seconds);
    counter_.Add(seconds);
    Discard();
  }
  // Ends the timing without recording a value.
  void Discard() {
    histogram_ = Histogram();
    counter_ = Counter();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::time_point Now(const detail::Handle& metric) {
    return metric ? Clock::now() : Clock::time_point();
  }

  Histogram histogram_;
  Counter counter_;
  Clock::time_point begin_;
};

// A phase of the program from here to the end of the block, shown as a band on every plot.
class ScopedPhase {
 public:
  explicit ScopedPhase(Text name) {
    // A name that does not fit is refused by sonde_phase_begin() as well.
    const std::size_t size = name.c_str() == nullptr ? 0 : std::strlen(name.c_str());
    status_ = sonde_phase_begin(name.c_str());
    if (status_ == SONDE_OK && size < sizeof(name_)) std::memcpy(name_, name.c_str(), size + 1);
  }
  ~ScopedPhase() {
    if (status_ == SONDE_OK) sonde_phase_end(name_);
  }
  ScopedPhase(const ScopedPhase&) = delete;
  ScopedPhase& operator=(const ScopedPhase&) = delete;

  int status() const { return status_; }

 private:
  char name_[128 + 1] = {};
  int status_;
};

// A remark, shown on every plot at its time. Returns a code of sonde.h.
inline int Annotate(Text text) { return sonde_annotate(text.c_str()); }

// A figure of merit: a number that this run is judged by. The last value given counts.
inline int Figure(Text name, double value, Text unit = {}) {
  return sonde_figure(name.c_str(), value, unit.c_str());
}

// Why the calling thread's last call failed, in words that name what is wrong and what is allowed.
inline const char* Error() { return sonde_error(); }

// Attaches this process. Optional: the first metric does it. Only a forked child that makes no
// metric but updates those it has inherited needs it.
inline int Init() { return sonde_init(); }

// Ends the record of this process now instead of at its exit.
inline void Finalize() { sonde_finalize(); }

}  // namespace sonde

#endif
