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
 * Counters are added to and never fall; gauges are set. A metric is the same for all threads, and
 * registering it again (same name, same tags) gives the same pointer. Pointers stay valid until the
 * process ends.
 *
 * Threads: every function may be called from any thread, before main() too. sonde_set() may be
 * called in a signal handler; the others may not. The library starts no thread, raises no signal
 * and never waits longer than 0.1 s in total, once, for a daemon that is too busy to answer.
 *
 * fork(): the child's updates of its parent's metrics go nowhere until the child calls sonde_init()
 * or registers a metric; from then on it is recorded as a process of its own, counting from zero.
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
  double* cell;  /* a gauge's value; NULL for a counter */
  uint32_t slot; /* a counter's place in every thread's shard; UINT32_MAX for a gauge */
  uint32_t reserved;
} sonde_metric_t;

/* Attaches this process to the step's daemon. Optional: the first metric does it. Repeated calls
 * return what the first one came to; in a forked child the first call attaches the child. */
int sonde_init(void);

/* A counter: starts at 0, only grows. A gauge: has no value until it is set.
 *
 * name   [a-zA-Z_:][a-zA-Z0-9_:.-]*, at most 128 bytes; by convention a counter ends in _total
 * unit   "seconds", "bytes", "1" for a count or ratio; NULL for none; at most 128 bytes
 * help   one line for people; NULL for none; at most 512 bytes
 * level  the telemetry level from which it is recorded, 1 to 4; 0 for the usual, 1
 * tags   tag_count of them, at most 7, keys unique; the order does not matter
 *
 * Returns NULL if it is not recorded; sonde_status() tells why. All texts are copied. */
sonde_metric_t* sonde_counter(const char* name, const char* unit, const char* help, int level,
                              const sonde_tag_t* tags, size_t tag_count);
sonde_metric_t* sonde_gauge(const char* name, const char* unit, const char* help, int level,
                            const sonde_tag_t* tags, size_t tag_count);

/* Sets a gauge to a value measured at a time of its own, nanoseconds since 1970 UTC. A value whose
 * time lies ahead is recorded when that time has come. Feed a gauge by this or by sonde_set(), not
 * by both. */
void sonde_set_at(sonde_metric_t* metric, double value, int64_t time_ns);

/* Ends the record of this process now instead of at its exit. Updates are allowed after it and go
 * nowhere. */
void sonde_finalize(void);

/* How the calling thread's last sonde_init, sonde_counter, sonde_gauge or sonde_finalize went. */
int sonde_status(void);

/* That code in words; a constant string. */
const char* sonde_strerror(int code);

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
};
extern __thread struct sonde_thread sonde_thread_ __attribute__((tls_model("initial-exec")));
void sonde_add_slow_(sonde_metric_t* metric, double value);

/* Sets a gauge. Nothing happens for NULL or a counter. A value that is not finite is recorded as
 * missing. */
static inline void sonde_set(sonde_metric_t* metric, double value) {
  if (metric != NULL && metric->cell != NULL) {
    __atomic_store(metric->cell, &value, __ATOMIC_RELAXED);
  }
}

/* Adds to a counter; what is negative or not a number is ignored. Whole numbers are cheapest. Adds
 * to a gauge, too, then of either sign. */
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

#ifdef __cplusplus
}
#endif

#endif
