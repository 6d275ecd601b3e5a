/* libsonde: an application's own metrics in the record of its job step.
 *
 *   static sonde_metric_t* residual;
 *   residual = sonde_gauge("heat_residual", "1", "Largest change of a cell", 0, NULL, 0);
 *   ...
 *   sonde_set(residual, r);
 *
 * That is all: no call is needed before the first metric or after the last. A process that runs
 * without telemetry (no daemon, level 0) gets NULL for every metric, and every update of NULL
 * returns at once, so a program never has to ask. Nothing is printed unless SONDE_DEBUG=1.
 *
 * Counters are added to and never fall; gauges are set; histograms observe values and tell how they
 * are distributed. A metric is the same for all threads, and registering it again (same name, same
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
 * docs/client.md says what becomes of the values.
 */
#ifndef SONDE_H
#define SONDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call came to. Values never change. */
enum {
  SONDE_OK = 0,
  SONDE_OFF = 1,         /* no telemetry was asked for: SONDE_SOCKET is not set */
  SONDE_UNREACHABLE = 2, /* nobody answered at SONDE_SOCKET */
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

/* The fields are for the functions below alone. */
/* NOLINTNEXTLINE(modernize-use-using): this is C */
typedef struct sonde_metric {
  double* cell;       /* a gauge's value; NULL for others */
  uint32_t slot;      /* a counter's place in every thread's shard; UINT32_MAX for others */
  uint32_t histogram; /* a histogram's number; UINT32_MAX for others */
} sonde_metric_t;

/* Attaches this process to the step's daemon. Optional: the first metric or moment does it.
 * Repeated calls return what the first one came to, but that a daemon that was not there
 * (SONDE_UNREACHABLE) is looked for again, at most once a second; in a forked child the first call
 * attaches the child. */
int sonde_init(void);

/* A counter: starts at 0, only grows. A gauge: has no value until it is set. A histogram: counts
 * the values it is given in buckets of a fixed relative width, so that any quantile is known within
 * 1.6 %, over time, ranks and nodes; at most 512 of them in a process.
 *
 * name   [a-zA-Z_:][a-zA-Z0-9_:.-]*, at most 128 bytes, a histogram's 122; by convention a counter
 *        ends in _total
 * unit   "seconds", "bytes", "1" for a count or ratio; NULL for none; at most 128 bytes
 * help   one line for people; NULL for none; at most 512 bytes
 * level  the telemetry level from which it is recorded, 1 to 4; 0 for the usual, 1
 * tags   tag_count of them, at most 7, keys unique; the order does not matter
 *
 * Returns NULL if it is not recorded; sonde_status() and sonde_error() tell why. All texts are
 * copied. */
sonde_metric_t* sonde_counter(const char* name, const char* unit, const char* help, int level,
                              const sonde_tag_t* tags, size_t tag_count);
sonde_metric_t* sonde_gauge(const char* name, const char* unit, const char* help, int level,
                            const sonde_tag_t* tags, size_t tag_count);

sonde_metric_t* sonde_histogram(const char* name, const char* unit, const char* help, int level,
                                const sonde_tag_t* tags, size_t tag_count);

/* Sets a gauge to a value measured at a time of its own, nanoseconds since 1970 UTC. A value whose
 * time lies ahead is recorded when that time has come or the process has ended. Feed a gauge by
 * this or by sonde_set(), not by both. */
void sonde_set_at(sonde_metric_t* metric, double value, int64_t time_ns);

/* Moments. Every text is plain UTF-8 without control characters; what many ranks say at the same
 * time is shown once, with the number of ranks. Some 100 ns each; they return SONDE_OK or why they
 * do nothing, and what comes faster than the daemon takes it (some 1,000 in a tick) is left out,
 * with a note.
 *
 * A remark, shown on every plot at its time: at most 192 bytes. */
int sonde_annotate(const char* text);

/* A phase of the program, shown as a band on every plot: at most 128 bytes. Phases may lie in each
 * other and overlap; one that begins again before it has ended, in another thread for example, ends
 * with the last end. Time spent in it is counted in the counter phase_seconds_total, tag phase. */
int sonde_phase_begin(const char* name);
int sonde_phase_end(const char* name);

/* A figure of merit: what this run is judged by, such as steps per second or a final error. The
 * last value given counts; it stands in the report, in lists of jobs and in comparisons. name: as a
 * metric's. unit: as a metric's. value: finite. */
int sonde_figure(const char* name, double value, const char* unit);

/* Ends the record of this process now instead of at its exit. Updates are allowed after it and go
 * nowhere. */
void sonde_finalize(void);

/* 1 while this process is attached to a daemon that lives, else 0: before the first registration,
 * without telemetry, and once the step's daemon has gone. For programs that run on beside a step.
 */
int sonde_attached(void);

/* How the calling thread's last sonde_init, registration, moment or sonde_finalize went. */
int sonde_status(void);

/* That code in words; a constant string. */
const char* sonde_strerror(int code);

/* How it went in words that name what is wrong with which metric, tag or text, and what is allowed;
 * the words of the code where there is no more to say. Stays until the thread's next such call. */
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
  uint32_t limit; /* slots below may be added to */
  uint32_t state;
  /* By histogram; NULL where this thread has not observed yet. */
  struct sonde_distribution** distributions;
  uint32_t distributions_limit; /* numbers below may be looked up */
  uint32_t reserved;
};
/* The calling thread's own part of a histogram. */
enum {
  SONDE_HISTOGRAM_BUCKETS = 2530, /* too small; 32 for each power of two; too large */
  SONDE_HISTOGRAM_SHIFT = 47,     /* of a value's bits, which leaves the bucket's number */
  SONDE_HISTOGRAM_FIRST = 31744   /* that number in the first bucket, from 2^-31 */
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

/* Adds to a counter; what is negative or not a number is ignored. Whole numbers are cheapest. Adds
 * to a gauge, too, then of either sign. Nothing happens for NULL or a histogram. */
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

/* Gives a histogram a value. Nothing happens for NULL, another type, or what is not finite. Values
 * from 4.7e-10 to 2.8e14 are told apart; what is smaller (zero and negative values, too) or larger
 * is counted as such, and sum, minimum and maximum are exact all the same. */
static inline void sonde_observe(sonde_metric_t* metric, double value) {
  if (metric == NULL) return;
  if (metric->histogram < sonde_thread_.distributions_limit) {
    struct sonde_distribution* const own = sonde_thread_.distributions[metric->histogram];
    uint64_t place;
    __builtin_memcpy(&place, &value, sizeof(place));
    /* What is negative, infinite or not a number comes out too large. */
    place = (place >> SONDE_HISTOGRAM_SHIFT) - SONDE_HISTOGRAM_FIRST;
    if (own != NULL && place < SONDE_HISTOGRAM_BUCKETS - 2) {
      uint64_t* const count = &own->counts[place + 1];
      double sum = own->sum + value;
      __atomic_store(&own->sum, &sum, __ATOMIC_RELAXED);
      if (value < own->min) __atomic_store(&own->min, &value, __ATOMIC_RELAXED);
      if (value > own->max) __atomic_store(&own->max, &value, __ATOMIC_RELAXED);
      /* Last: whoever sees the count sees the rest. */
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
