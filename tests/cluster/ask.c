/* A task of a step that asks about the step it is part of: for test_query.py.
 *
 * Every rank sets ask_value to 10 * (rank + 1) and adds 100 * (rank + 1) to ask_total; rank 0 then
 * does what the first argument says and prints what it learns, and the others wait for the file
 * that the second one names.
 *
 *   set     nothing more, and rank 0 ends
 *   values  what is measured, and its values job-wide, by host and by task
 *   watch   sets ask_pulse above its bound twice and prints every call of a watch
 *   lost    prints "ready" and asks until the head is gone; then how the question ended
 *   wrong   what questions that are wrong are told
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libclient/sonde_query.h"

enum { PATIENCE_MS = 20000 };

static sonde_query_t* query;

static void fail(const char* what) {
  printf("failed %s: %s\n", what, sonde_query_error(query));
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double last(const sonde_series_t* series) {
  return series->point_count == 0 ? -1 : series->points[series->point_count - 1].value;
}

static void take(void* data, const sonde_result_t* news) { *(double*)data = last(news->series); }

/* Until as many ranks are in a tick. */
static void wait_for_ranks(int ranks) {
  const sonde_question_t question = {.metric = "ask_value", .aggregator = "count"};
  double there = 0;
  const uint64_t id = sonde_query_subscribe(query, &question, &take, &there);
  if (id == 0) fail("subscribe");
  while (there < ranks) {
    if (sonde_query_poll(query, PATIENCE_MS) <= 0) fail("poll");
  }
  if (sonde_query_cancel(query, id) != SONDE_OK) fail("cancel");
}

static void print_answer(const char* name, const sonde_question_t* question, const char* tag) {
  sonde_result_t* result;
  if (sonde_query_get(query, question, PATIENCE_MS, &result) != SONDE_OK) fail(name);
  printf("%s nodes %u/%u:", name, result->nodes_answered, result->nodes_expected);
  for (size_t i = 0; i < result->series_count; ++i) {
    const char* value = tag == NULL ? "all" : sonde_series_tag(&result->series[i], tag);
    printf(" %s=%g", value, last(&result->series[i]));
  }
  printf("\n");
  sonde_result_free(result);
}

static int began, ended;

static void tell(void* data, const sonde_event_t* event) {
  (void)data;
  ++*(event->is_true ? &began : &ended);
  printf("%s %g\n", event->is_true ? "true" : "over", event->value);
}

static void wait_until(const int* count, int wanted) {
  while (*count < wanted) {
    if (sonde_query_poll(query, PATIENCE_MS) <= 0) fail("poll");
  }
}

static void values(void) {
  sonde_list_t* list;
  if (sonde_query_list(query, "ask_value", PATIENCE_MS, &list) != SONDE_OK) fail("list");
  for (size_t i = 0; i < list->metric_count; ++i) {
    const sonde_metric_info_t* m = &list->metrics[i];
    printf("metric %s %s %s %d '%s' %zu %s=%s\n", m->name, m->unit, m->type, m->level, m->help,
           m->tag_count, m->tags[0].key, m->tags[0].value);
  }
  sonde_list_free(list);
  sonde_question_t question = {.metric = "ask_value", .aggregator = "sum", .last_seconds = 60};
  print_answer("sum", &question, NULL);
  question.aggregator = "max";
  print_answer("max", &question, NULL);
  question.flags = SONDE_BY_HOST;
  print_answer("by_host", &question, "host");
  question.flags = SONDE_BY_TASK;
  print_answer("by_task", &question, "task");
  const sonde_filter_t filters[] = {{"literal_or", "host", "n2|n3", 0}, {NULL, "kind", "test", 0}};
  question = (sonde_question_t){.metric = "ask_value",
                                .aggregator = "sum",
                                .filters = filters,
                                .filter_count = 2,
                                .last_seconds = 60};
  print_answer("filtered", &question, NULL);
  const sonde_filter_t leaves_out = {"not_literal_or", "host", "n1", 0};
  question.filters = &leaves_out;
  question.filter_count = 1;
  print_answer("without_n1", &question, NULL);
  question = (sonde_question_t){
      .metric = "ask_total", .aggregator = "sum", .downsample = "0all-max", .last_seconds = 60};
  print_answer("total", &question, NULL);
  /* Nobody adds any more, at every tick from some on. */
  if (sonde_query_watch(query, "ask_total sum rate == 0 for 200ms", 0, &tell, NULL) == 0) {
    fail("watch");
  }
  wait_until(&began, 1);
  question = (sonde_question_t){
      .metric = "ask_total", .aggregator = "sum", .flags = SONDE_RATE, .last_seconds = 5.5};
  print_answer("rate", &question, NULL);
}

/* More ticks than the condition needs, of which none may call back. */
static void let_pass(int ticks) {
  const int before = began + ended;
  const double until = now() + ticks * sonde_query_period(query);
  while (now() < until && sonde_query_poll(query, 10) >= 0) continue;
  if (began + ended != before) printf("another call\n");
}

static void watch(void) {
  sonde_metric_t* pulse = sonde_gauge("ask_pulse", "1", "Up and down", 1, NULL, 0);
  sonde_set(pulse, 1);
  if (sonde_query_watch(query, "ask_pulse max > 5 for 300ms", 1, &tell, NULL) == 0) fail("watch");
  let_pass(5);
  for (int round = 1; round <= 2; ++round) {
    sonde_set(pulse, 7);
    wait_until(&began, round);
    let_pass(5);
    sonde_set(pulse, 2);
    wait_until(&ended, round);
    let_pass(3);
  }
  if (sonde_query_watch(query, "ask_pulse ~ 3", 0, &tell, NULL) == 0) {
    printf("%s\n", sonde_query_error(query));
  }
}

static void lost(void) {
  const sonde_question_t question = {.metric = "ask_value", .flags = SONDE_BY_HOST};
  printf("ready\n");
  fflush(stdout);
  for (;;) {
    sonde_result_t* result;
    const double start = now();
    const int code = sonde_query_get(query, &question, 3000, &result);
    sonde_result_free(result);
    if (code == SONDE_OK) continue;
    printf("code %d in time %d: %s\n", code, now() - start < 3.5, sonde_query_error(query));
    return;
  }
}

static void wrong(void) {
  const sonde_filter_t no_type = {"like", "host", "n1", 0};
  const sonde_question_t questions[] = {
      {.metric = "no_such_metric", .last_seconds = 1},
      {.metric = "no metric at all"},
      {.metric = "ask_value", .aggregator = "mean"},
      {.metric = "ask_value", .downsample = "often"},
      {.metric = "ask_value", .filters = &no_type, .filter_count = 1},
      {.metric = "ask_value", .start_ns = 10, .end_ns = 5},
  };
  for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); ++i) {
    sonde_result_t* result;
    const int code = sonde_query_get(query, &questions[i], PATIENCE_MS, &result);
    printf("%d %s\n", code, sonde_query_error(query));
  }
  print_answer("still", &(sonde_question_t){.metric = "ask_value", .aggregator = "min"}, NULL);
}

int main(int argc, char** argv) {
  const int rank = atoi(getenv("SLURM_PROCID")), ranks = atoi(getenv("SLURM_NTASKS"));
  const sonde_tag_t tag = {"kind", "test"};
  struct stat info;
  if (argc != 3) return 2;
  sonde_set(sonde_gauge("ask_value", "bytes", "What is asked for", 1, &tag, 1), 10.0 * (rank + 1));
  sonde_add(sonde_counter("ask_total", "1", "What is counted", 1, NULL, 0), 100.0 * (rank + 1));
  if (rank != 0) {
    while (stat(argv[2], &info) != 0) usleep(20000);
    return 0;
  }
  if (strcmp(argv[1], "set") == 0) return 0;
  int code;
  query = sonde_query_open(10000, &code);
  if (query == NULL) {
    printf("no query: %s\n", sonde_strerror(code));
    return 1;
  }
  wait_for_ranks(ranks);
  if (strcmp(argv[1], "values") == 0) values();
  if (strcmp(argv[1], "watch") == 0) watch();
  if (strcmp(argv[1], "lost") == 0) lost();
  if (strcmp(argv[1], "wrong") == 0) wrong();
  sonde_query_close(query);
  FILE* done = fopen(argv[2], "w");
  if (done != NULL) fclose(done);
  return 0;
}
