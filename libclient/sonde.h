/* libsonde: an application's own metrics in the record of its job step.
 *
 *   static sonde_metric_t* residual;
 *   residual = sonde_gauge("heat_residual", "1", "Largest change of a cell", 0, NULL, 0);
 *   ...
 *   sonde_set(residual, r);
 *
 * That is all: no call is needed before the first metric or after the last. A process that runs
 * without telemetry (no daemon, level 0) gets NULL for every metric, and every update of NULL
 * returns at once, so a program need not check. Nothing is printed unless SONDE_DEBUG=1.
 *
 * Counters only grow; gauges are set; histograms observe values and tell how the values are
 * distributed. A metric is the same for all threads, and registering it again (same name, same
 * tags) gives the same pointer. Pointers stay valid until the process ends.
 *
 * Beside metrics there are moments: remarks, phases of the program and figures of merit.
 *
 * Threads: every function may be called from any thread, before main() too. sonde_set() may be
 * called in a signal handler; the others may not. The library starts no thread, raises no signal
 * and never waits longer than 0.1 s in total, once, for a daemon that is too busy to answer.
 *
 * fork(): the child's updates of its parent's metrics go nowhere until the child calls sonde_init()
 * or registers a metric or tells a moment; from then on it is recorded as a process of its own,
 * counting from zero.
 *
 * docs/client.md says what happens to the values.
 */
#ifndef SONDE_H
#define SONDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a call. Values never change. */
enum {
  SONDE_OK = 0,
  SONDE_OFF = 1,         /* no telemetry was asked for: SONDE_SOCKET is not set */
  SONDE_UNREACHABLE = 2, /* no daemon answered at SONDE_SOCKET */
  SONDE_FOREIGN = 3,     /* another user answered */
  SONDE_INVALID = 4,     /* a name, tag, text or level that is not allowed */
  SONDE_CONFLICT = 5,    /* registered before as another type */
  SONDE_LEVEL = 6,       /* the step's telemetry level is below the metric's */
  SONDE_LIMIT = 7,       /* too many metrics in this process */
  SONDE_SYSTEM = 8,      /* the operating system gave no memory or descriptor */
  SONDE_FINALIZED = 9    /* sonde_finalize() was called before */
};

/* NOLINTNEXTLINE(modernize-use-using): this is C */
typedef struct {
  const char* key;   /* [a-zA-Z_][a-zA-Z0-9_]*, not "task": that is the rank */
  const char* value; /* UTF-8 without control characters */
} sonde_tag_t;       /* both 1 to 128 bytes */

/* Only the functions below use the fields. */
/* NOLINTNEXTLINE(modernize-use-using): this is C */
typedef struct sonde_metric {
  double* cell;       /* a gauge's value; NULL for others */
  uint32_t slot;      /* a counter's place in every thread's shard; UINT32_MAX for others */
  uint32_t histogram; /* a histogram's number; UINT32_MAX for others */
} sonde_metric_t;

/* Attaches this process to the step's daemon. Optional: the first metric or moment does it.
 * Repeated calls return the result of the first one. After SONDE_UNREACHABLE, however, a call looks
 * for the daemon again, at most once a second; and in a forked child the first call attaches the
 * child. */
int sonde_init(void);

/* A counter: starts at 0, only grows. A gauge: has no value until it is set. A histogram: counts
 * the values it is given in buckets of a fixed relative width, so that any quantile is known within
 * 1.6 %, over time, ranks and nodes; at most 512 histograms in a process.
 *
 * name   [a-zA-Z_:][a-zA-Z0-9_:.-]*, at most 128 bytes, a histogram's 122; by convention a counter
 *        ends in _total
 * unit   "seconds", "bytes", "1" for a count or ratio; NULL for none; at most 128 bytes
 * help   one line for people; NULL for none; at most 512 bytes
 * level  the lowest telemetry level that records the metric, 1 to 4; 0 for the default, 1
 * tags   an array of tag_count tags, at most 7, keys unique; the order does not matter
 *
 * Returns NULL if the metric is not recorded; sonde_status() and sonde_error() tell why. All texts
 * are copied. */
sonde_metric_t* sonde_counter(const char* name, const char* unit, const char* help, int level,
                              const sonde_tag_t* tags, size_t tag_count);
sonde_metric_t* sonde_gauge(const char* name, const char* unit, const char* help, int level,
                            const sonde_tag_t* tags, size_t tag_count);

sonde_metric_t* sonde_histogram(const char* name, const char* unit, const char* help, int level,
                                const sonde_tag_t* tags, size_t tag_count);

/* Sets a gauge to a value and the time of its measurement, in nanoseconds since 1970 UTC. A value
 * whose time lies ahead is recorded when that time has come or the process has ended. Feed a gauge
 * by this function or by sonde_set(), not by both. */
void sonde_set_at(sonde_metric_t* metric, double value, int64_t time_ns);

/* Adds a value that a gauge had at a time that has passed, in nanoseconds since 1970 UTC: it is
 * recorded at the tick that is nearest to it, in place of what was there, and changes nothing that
 * is recorded at other ticks. So a program may tell at the end of an iteration what it measured
 * during it. Of several values for one tick the last one told counts. Takes some 10 ns. Values that
 * come faster than the daemon takes them (65,536 in a tick) are left out, with a note, and so are
 * those from more than a day before the step began; one whose time lies ahead is recorded as of
 * now. Returns SONDE_OK, or the code for why it did nothing. Nothing happens for NULL, another
 * type, or a value that is not finite. */
int sonde_set_past(sonde_metric_t* metric, double value, int64_t time_ns);

/* Moments. Every text is plain UTF-8 without control characters; a text that many ranks say at the
 * same time is shown once, with the number of ranks. A call takes some 100 ns and returns SONDE_OK,
 * or the code for why it did nothing. Moments that come faster than the daemon takes them (some
 * 1,000 in a tick) are left out, with a note.
 *
 * A remark, shown on every plot at its time: at most 192 bytes. */
int sonde_annotate(const char* text);

/* A phase of the program, shown as a band on every plot: at most 128 bytes. Phases may nest and
 * overlap; a phase that begins again before it has ended, in another thread for example, ends with
 * its last end. The counter phase_seconds_total, tag phase, counts the time spent in it. */
int sonde_phase_begin(const char* name);
int sonde_phase_end(const char* name);

/* A figure of merit: a number that this run is judged by, such as steps per second or a final
 * error. The last value given counts; the report, lists of jobs and comparisons show it. name: as a
 * metric's. unit: as a metric's. value: finite. */
int sonde_figure(const char* name, double value, const char* unit);

/* Ends the record of this process now instead of at its exit. Later updates are allowed and
 * have no effect. */
void sonde_finalize(void);

/* 1 while this process is attached to a running daemon, else 0: before the first registration,
 * without telemetry, and once the step's daemon has gone. For programs that keep running beside a
 * step. */
int sonde_attached(void);

/* The result of the calling thread's last sonde_init, registration, moment or sonde_finalize. */
int sonde_status(void);

/* A code in words; a constant string. */
const char* sonde_strerror(int code);

/* That result in words: which metric, tag or text is wrong, why, and what is allowed; the words of
 * the code if there is no more to say. Valid until the thread's next such call. */
const char* sonde_error(void);

/* Internal to sonde_add(): the calling thread's own part of every counter. Whole numbers are added
 * up apart from fractions: they are exact, and adding integers in memory costs a tenth of adding
 * doubles. */
struct sonde_count {
  uint64_t whole;
  double fraction;
};
struct sonde_thread {
  struct sonde_count* counts;
  uint32_t limit; /* slots below this number may be added to */
  uint32_t state;
  /* One for each histogram; NULL where this thread has not observed yet. */
  struct sonde_distribution** distributions;
  uint32_t distributions_limit; /* histograms below this number may be looked up */
  uint32_t reserved;
};
/* The calling thread's own part of a histogram. */
enum {
  SONDE_HISTOGRAM_BUCKETS = 2530, /* too small; 32 for each power of two; too large */
  SONDE_HISTOGRAM_SHIFT = 47,     /* shifting a value's bits by it leaves the bucket's number */
  SONDE_HISTOGRAM_FIRST = 31744   /* that number for the first bucket, from 2^-31 */
};
struct sonde_distribution {
  double sum;
  double min;
  double max;
  uint64_t reserved[5];
  uint64_t counts[SONDE_HISTOGRAM_BUCKETS];
};
extern __thread struct sonde_thread sonde_thread_ __attribute__((tls_model("initial-exec")));
void sonde_add_slow_(sonde_metric_t* metric, double value);
void sonde_observe_slow_(sonde_metric_t* metric, double value);

/* Sets a gauge. Nothing happens for NULL or another type. A value that is not finite is recorded as
 * missing. */
static inline void sonde_set(sonde_metric_t* metric, double value) {
  if (metric != NULL && metric->cell != NULL) {
    __atomic_store(metric->cell, &value, __ATOMIC_RELAXED);
  }
}

/* Adds to a counter; a negative value and NaN are ignored. Whole numbers are cheapest. Also adds to
 * a gauge, there a value of either sign. Nothing happens for NULL or a histogram. */
static inline void sonde_add(sonde_metric_t* metric, double value) {
  if (metric == NULL) return;
  if (metric->slot < sonde_thread_.limit && value >= 0 && value < 9007199254740992.0) {
    const uint64_t whole = (uint64_t)(int64_t)value;
    if ((double)(int64_t)whole == value) {
      uint64_t* const sum = &sonde_thread_.counts[metric->slot].whole;
      __atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + whole, __ATOMIC_RELAXED);
      return;
    }
  }
  sonde_add_slow_(metric, value);
}

/* Gives a histogram a value. Nothing happens for NULL, another type, or a value that is not finite.
 * Values from 4.7e-10 to 2.8e14 are told apart; smaller values (also zero and negative ones) and
 * larger ones are counted as too small or too large. Sum, minimum and maximum are always exact. */
static inline void sonde_observe(sonde_metric_t* metric, double value) {
  if (metric == NULL) return;
  if (metric->histogram < sonde_thread_.distributions_limit) {
    struct sonde_distribution* const own = sonde_thread_.distributions[metric->histogram];
    uint64_t place;
    __builtin_memcpy(&place, &value, sizeof(place));
    /* A value that is negative, infinite or NaN gives a place that is too large. */
    place = (place >> SONDE_HISTOGRAM_SHIFT) - SONDE_HISTOGRAM_FIRST;
    if (own != NULL && place < SONDE_HISTOGRAM_BUCKETS - 2) {
      uint64_t* const count = &own->counts[place + 1];
      double sum = own->sum + value;
      __atomic_store(&own->sum, &sum, __ATOMIC_RELAXED);
      if (value < own->min) __atomic_store(&own->min, &value, __ATOMIC_RELAXED);
      if (value > own->max) __atomic_store(&own->max, &value, __ATOMIC_RELAXED);
      /* Last: a reader that sees the count sees the rest. */
      __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
      return;
    }
  }
  sonde_observe_slow_(metric, value);
}

#ifdef __cplusplus
}
#endif

#endif
