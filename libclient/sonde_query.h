/* Questions of a running program about the data of its own step: what is measured, the values of
 * the last minute, every new value as it comes, and a call when a condition becomes true.
 *
 *   sonde_query_t* query = sonde_query_open(1000, NULL);
 *   sonde_question_t ask = {.metric = "heat_residual", .aggregator = "max", .last_seconds = 60};
 *   sonde_result_t* result;
 *   if (sonde_query_get(query, &ask, 1000, &result) == SONDE_OK) {
 *     ...
 *     sonde_result_free(result);
 *   }
 *
 * The daemon of the node answers for the whole step: job-wide values come from what the nodes
 * reduced at every tick, values by host or task from the nodes themselves. docs/client.md has
 * examples, limits and costs; the words of a question are OpenTSDB's (docs/queries.md).
 *
 * Callbacks run only within sonde_query_poll(), in the caller's thread: the library starts no
 * thread. A program that also waits for other things watches sonde_query_fd() for reading. It calls
 * sonde_query_poll(query, 0) when there is something to read, and after every sonde_query_get() or
 * sonde_query_list(): values that came meanwhile wait for that call.
 *
 * Threads: a query is used by one thread at a time; different queries are independent. fork(): the
 * child closes the query it inherits and opens its own; other calls fail there with SONDE_INVALID.
 *
 * Without telemetry sonde_query_open() returns NULL; other functions take it and return SONDE_OFF.
 */
#ifndef SONDE_QUERY_H
#define SONDE_QUERY_H

#include <stddef.h>
#include <stdint.h>

#include "sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a call, besides the codes of sonde.h. Values never change. */
enum {
  SONDE_TIMEOUT = 32,  /* no answer in the time given */
  SONDE_LOST = 33,     /* the daemon, or the head of the step, is gone */
  SONDE_NOT_FOUND = 34 /* the step has no such metric, so far */
};

/* NOLINTBEGIN(modernize-use-using): this is C */

typedef struct sonde_query sonde_query_t;

/* Connects to the daemon of this node, which may be just starting: waits for it at most
 * `timeout_ms`. NULL if that fails; `code`, unless NULL, tells why. */
sonde_query_t* sonde_query_open(int timeout_ms, int* code);
/* Closes the query and ends its subscriptions. Must not be called in a callback of this query. */
void sonde_query_close(sonde_query_t* query);
/* The descriptor to watch for reading; -1 for NULL. */
int sonde_query_fd(const sonde_query_t* query);
/* The result of this query's last call, in words that name what was wrong; valid until the next. */
const char* sonde_query_error(const sonde_query_t* query);
/* The period of the step's ticks in seconds: new values come that often. */
double sonde_query_period(const sonde_query_t* query);

/* --- What is measured --- */

typedef struct {
  const char* name;
  const char* unit;
  const char* help;
  const char* type; /* "gauge", "counter" or "histogram" */
  int level;
  const sonde_tag_t* tags; /* the metric's own; series also have job, host and, if a task's, task */
  size_t tag_count;
} sonde_metric_info_t;

typedef struct {
  const sonde_metric_info_t* metrics;
  size_t metric_count;
} sonde_list_t;

/* Lists the step's series so far, each once for all nodes and tasks: those of `metric`, or all if
 * NULL. On SONDE_OK the caller frees *list with sonde_list_free(); else *list is NULL. */
int sonde_query_list(sonde_query_t* query, const char* metric, int timeout_ms, sonde_list_t** list);
void sonde_list_free(sonde_list_t* list);

/* --- Values --- */

typedef struct {
  const char* type; /* literal_or, not_literal_or, iliteral_or, not_iliteral_or, wildcard,
                       iwildcard or regexp; NULL: literal_or */
  const char* key;
  const char* value; /* a|b|c, or a pattern */
  int group_by;      /* 1: a result for each value of the tag */
} sonde_filter_t;

enum {
  SONDE_RATE = 1,          /* change per second */
  SONDE_RATE_COUNTER = 2,  /* the same of a counter: a fall is an overflow */
  SONDE_RATE_DROP = 4,     /* the same; a fall is left out */
  SONDE_EXPLICIT_TAGS = 8, /* only series that have the filtered tags and no others */
  SONDE_BY_HOST = 16,      /* a result for each node: as a filter {"wildcard", "host", "*", 1} */
  SONDE_BY_TASK = 32       /* a result for each rank: the same with "task" */
};

/* A field that is 0 or NULL has its default. */
typedef struct {
  const char* metric;
  const char* aggregator; /* sum, avg, min, max, count, none, p5, p50, p75, p90, p95, p99 or p999;
                             NULL: avg */
  const char* downsample; /* such as "10s-avg"; NULL: the value of every tick */
  const sonde_filter_t* filters;
  size_t filter_count; /* at most 62 */
  int flags;           /* SONDE_RATE... */
  double last_seconds; /* the range up to now; 0: the next two give the range */
  int64_t start_ns;    /* nanoseconds since 1970 UTC; 0: the step's start */
  int64_t end_ns;      /* 0: now */
} sonde_question_t;

typedef struct {
  int64_t time_ns;
  double value; /* NaN only where downsampling fills a gap */
} sonde_point_t;

/* One result: the points of a group of series, in time order. */
typedef struct {
  const char* metric;
  const sonde_tag_t* tags; /* the same in all series of the group */
  size_t tag_count;
  const char* const* aggregated; /* the keys of the other tags */
  size_t aggregated_count;
  const sonde_point_t* points;
  size_t point_count;
} sonde_series_t;

typedef struct {
  const sonde_series_t* series;
  size_t series_count;
  uint32_t nodes_answered; /* fewer than expected: some did not answer in time */
  uint32_t nodes_expected;
  int late;        /* of a subscription: the same tick again, with a part that came late */
  uint32_t missed; /* of a subscription: results left out before this one, as they were not read */
  int rows_only;   /* nodes are missing in some of the values, and could not be asked for theirs */
} sonde_result_t;

/* Answers the question. On SONDE_OK the caller frees *result with sonde_result_free(); it may hold
 * no series if there is no value in the range. Else *result is NULL. */
int sonde_query_get(sonde_query_t* query, const sonde_question_t* question, int timeout_ms,
                    sonde_result_t** result);
void sonde_result_free(sonde_result_t* result);
/* The value of a tag; NULL if the series does not have the tag. */
const char* sonde_series_tag(const sonde_series_t* series, const char* key);

/* --- Values as they come --- */

/* `news` has one point in each of its series, and is valid during the call. A callback may call
 * every function of this header except sonde_query_close() and sonde_query_poll(). */
typedef void (*sonde_points_fn)(void* data, const sonde_result_t* news);

/* Calls back with the value of every tick from now on, once the nodes' parts are there; not for a
 * tick without a value, and for the same tick again, with `late` set, when a part came late. The
 * metric need not exist yet. The question's downsample and times are ignored. Returns the
 * subscription's id, or 0. */
uint64_t sonde_query_subscribe(sonde_query_t* query, const sonde_question_t* question,
                               sonde_points_fn callback, void* data);
/* Ends a subscription or a watch. */
int sonde_query_cancel(sonde_query_t* query, uint64_t id);

/* --- Conditions --- */

enum {
  SONDE_GREATER = 1,
  SONDE_GREATER_EQUAL = 2,
  SONDE_LESS = 3,
  SONDE_LESS_EQUAL = 4,
  SONDE_EQUAL = 5,
  SONDE_NOT_EQUAL = 6
};

/* True when the value of every tick of the last `for_seconds`, at least one, compares with `bound`
 * as `compare` says; with group_by, for each group by itself. */
typedef struct {
  sonde_question_t of;
  int compare; /* SONDE_GREATER... */
  double bound;
  double for_seconds;
} sonde_condition_t;

typedef struct {
  uint64_t id;     /* the watch */
  int is_true;     /* 1: the condition became true; 0: it is over */
  int64_t time_ns; /* of the tick */
  double value;
  const sonde_series_t* series; /* the series of the value; its tags name the group */
} sonde_event_t;

/* Called when the condition becomes true, once until it has been false again. */
typedef void (*sonde_watch_fn)(void* data, const sonde_event_t* event);

/* Watches a condition, given as a structure or as text:
 *
 *   METRIC[{tag=value,...}] [AGGREGATOR] [rate] [by KEY,...] COMPARISON NUMBER [for TIME]
 *
 *   heat_residual max > 10 for 3s
 *   node_memory_MemAvailable_bytes by host < 1e9
 *   phase_seconds_total{phase=io} sum rate by host,task >= 0.5 for 1m
 *
 * A tag's value may be a|b, or a pattern with *; "!=" leaves values out. COMPARISON: > >= < <= ==
 * !=. TIME: a number with ms, s, m or h. With `tell_end` the callback is also called when the
 * condition is over. Values that come late do not count. Returns the watch's id, or 0. */
uint64_t sonde_query_watch(sonde_query_t* query, const char* condition, int tell_end,
                           sonde_watch_fn callback, void* data);
uint64_t sonde_query_watch_if(sonde_query_t* query, const sonde_condition_t* condition,
                              int tell_end, sonde_watch_fn callback, void* data);

/* --- Alarms --- */

/* Makes the step's head raise an alarm when a rule holds, from now on until the step ends. The
 * alarm is in the profile, in the report and on the plots, and is sent where the user wants alarms
 * sent. docs/alarms.md has the rules, such as
 *
 *   heat_residual max > 1e6 for 3s critical message "residual is {value}"
 *
 * Every rank may give the same rule. A wrong rule, or another rule under a name that is taken, is
 * SONDE_INVALID; sonde_query_error() says what is wrong. */
int sonde_query_alarm(sonde_query_t* query, const char* name, const char* rule, int timeout_ms);

/* Waits for news, at most `timeout_ms` (-1: for ever), and calls back for all news that is there.
 * Returns the number of callbacks, or the negative of a code: -SONDE_LOST once the daemon is gone.
 * If the step's head had to end a subscription, returns the negative of its code, once. */
int sonde_query_poll(sonde_query_t* query, int timeout_ms);

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif
