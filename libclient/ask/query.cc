// The functions of sonde_query.h.
//
// A query is a connection, the list of its subscriptions and watches, and a queue of the messages
// that came for these while a question waited for its answer. No C++ runtime: malloc gives memory.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "core/bytes.h"
#include "libclient/ask/answer.h"
#include "libclient/ask/bytes.h"
#include "libclient/ask/condition.h"
#include "libclient/ask/connection.h"
#include "libclient/ask/layout.h"
#include "libclient/ask/question.h"
#include "libclient/sonde_query.h"

#define SONDE_EXPORT extern "C" __attribute__((visibility("default")))

namespace sonde::client {
namespace {

constexpr int kRequestMs = 5000;          // for requests that have no timeout of their own
constexpr size_t kMaxWaiting = 1u << 20;  // bytes of values that wait for sonde_query_poll()
constexpr size_t kMaxGroups = 4096;       // of one watch
constexpr int kMaxCalls = 1024;           // within one sonde_query_poll()

// A message that came and has not been dispatched yet.
struct Waiting {
  Waiting* next;
  AskMessage message;
};

// A subscription, or a watch.
struct Standing {
  Standing* next;
  uint64_t id;
  bool dead;  // cancelled; goes once nothing is being dispatched
  sonde_points_fn points;
  sonde_watch_fn watch;
  void* data;
  bool tell_end;
  uint32_t missed;
  ParsedCondition* condition;  // of a watch
  GroupState* groups;
  size_t group_count;
};

void FreeStanding(Standing* standing) {
  free(standing->condition);
  free(standing->groups);
  free(standing);
}

}  // namespace
}  // namespace sonde::client

using namespace sonde::client;

struct sonde_query {
  AskConnection connection;
  pid_t pid = getpid();
  uint64_t next_id = 1;
  Standing* standing = nullptr;
  Waiting* first = nullptr;
  Waiting* last = nullptr;
  size_t waiting_bytes = 0;
  bool dispatching = false;
  char error[kMaxWhy + 1] = "done";
};

namespace sonde::client {
namespace {

const char* Words(int code) {
  switch (code) {
    case SONDE_TIMEOUT:
      return "no answer in the time given";
    case SONDE_LOST:
      return "the daemon of this node, or the head of the step, is gone";
    case SONDE_NOT_FOUND:
      return "the step has no such metric so far";
    default:
      return sonde_strerror(code);
  }
}

int Fail(sonde_query_t* query, int code, const char* text) {
  snprintf(query->error, sizeof(query->error), "%s", text);
  return code;
}
int Finish(sonde_query_t* query, int code) { return Fail(query, code, Words(code)); }

// Whether the caller may use the query at all.
int Check(sonde_query_t* query) {
  if (query == nullptr) return SONDE_OFF;
  if (query->pid != getpid()) {
    return Fail(query, SONDE_INVALID, "this query was opened by the parent process; open another");
  }
  return SONDE_OK;
}

// Makes the text of a kFailed the query's error.
int FailureOf(sonde_query_t* query, const AskMessage& message) {
  sonde::ByteReader in({message.body, message.size});
  const auto code = in.Fixed<uint8_t>();
  const std::string_view why = in.Text(kMaxWhy);
  if (!in.done() || code == SONDE_OK) return Finish(query, SONDE_LOST);
  snprintf(query->error, sizeof(query->error), "%.*s", static_cast<int>(why.size()), why.data());
  return code;
}

Standing* Find(sonde_query_t* query, uint64_t id) {
  for (Standing* s = query->standing; s != nullptr; s = s->next) {
    if (s->id == id && !s->dead) return s;
  }
  return nullptr;
}

void Purge(sonde_query_t* query) {
  for (Standing** at = &query->standing; *at != nullptr;) {
    Standing* const standing = *at;
    if (!standing->dead) {
      at = &standing->next;
      continue;
    }
    *at = standing->next;
    FreeStanding(standing);
  }
}

// --- The queue ---

bool Pop(sonde_query_t* query, AskMessage* message) {
  Waiting* const first = query->first;
  if (first == nullptr) return false;
  *message = first->message;
  query->first = first->next;
  if (query->first == nullptr) query->last = nullptr;
  query->waiting_bytes -= first->message.size;
  free(first);
  return true;
}

// Values beyond the limit push out the oldest; their subscription is told how many.
void MakeRoom(sonde_query_t* query) {
  AskMessage oldest;
  while (query->waiting_bytes > kMaxWaiting && Pop(query, &oldest)) {
    if (Standing* const standing = Find(query, oldest.id)) standing->missed += oldest.missed + 1;
    free(oldest.body);
  }
}

// Keeps messages of subscriptions and watches; any other answers a question that was given up.
void Keep(sonde_query_t* query, const AskMessage& message) {
  const bool wanted = (message.kind == AskKind::kPoints || message.kind == AskKind::kFailed) &&
                      Find(query, message.id) != nullptr;
  auto* const waiting = wanted ? static_cast<Waiting*>(malloc(sizeof(Waiting))) : nullptr;
  if (waiting == nullptr) return free(message.body);
  *waiting = {nullptr, message};
  (query->last == nullptr ? query->first : query->last->next) = waiting;
  query->last = waiting;
  query->waiting_bytes += message.size;
  MakeRoom(query);
}

// --- Questions ---

// Sends a request and waits for its answer, of kind `wanted`; the caller frees the answer's body.
int Ask(sonde_query_t* query, AskKind kind, uint64_t id, const Bytes& body, int timeout_ms,
        AskKind wanted, AskMessage* answer) {
  if (!body.ok()) return Finish(query, SONDE_SYSTEM);
  const Deadline deadline(timeout_ms);
  int code = query->connection.Send(kind, id, body.view(), deadline);
  while (code == SONDE_OK) {
    code = query->connection.Receive(deadline, answer);
    if (code != SONDE_OK) break;
    if (answer->id == id && answer->kind == wanted) return Finish(query, SONDE_OK);
    if (answer->id == id && answer->kind == AskKind::kFailed) {
      code = FailureOf(query, *answer);
      free(answer->body);
      return code;
    }
    Keep(query, *answer);
  }
  if (code == SONDE_LIMIT) return Fail(query, code, "the question has more than 64 KiB");
  return Finish(query, code);
}

template <typename T>
int TakeAnswer(sonde_query_t* query, const AskMessage& answer, T* (*decode)(std::string_view),
               T** out) {
  *out = decode({answer.body, answer.size});
  free(answer.body);
  if (*out == nullptr) return Fail(query, SONDE_LOST, "the daemon's answer is malformed");
  return SONDE_OK;
}

// --- What stands ---

// Deep enough for GroupOf: the tags that are grouped by.
bool CopyForGroups(const sonde_condition_t& from, ParsedCondition* to) {
  to->condition = from;
  to->condition.of.filters = to->filters;
  to->condition.of.filter_count = 0;
  size_t used = 0;
  for (size_t i = 0; i < from.of.filter_count; ++i) {
    const sonde_filter_t& filter = from.of.filters[i];
    if (filter.group_by == 0 || filter.key == nullptr) continue;
    const size_t size = strlen(filter.key) + 1;
    size_t& count = to->condition.of.filter_count;
    if (count == ParsedCondition::kMaxFilters || used + size > ParsedCondition::kMaxText) {
      return false;
    }
    memcpy(to->text + used, filter.key, size);
    to->filters[count++] = {nullptr, to->text + used, nullptr, 1};
    used += size;
  }
  return true;
}

// Subscribes; takes ownership of `condition`, also on failure.
uint64_t Stand(sonde_query_t* query, const sonde_question_t& question, const Standing& what) {
  auto* const standing = static_cast<Standing*>(malloc(sizeof(Standing)));
  if (standing == nullptr) {
    free(what.condition);
    Finish(query, SONDE_SYSTEM);
    return 0;
  }
  *standing = what;
  standing->id = query->next_id++;
  // Added before the request is sent: values may follow its answer at once.
  standing->next = query->standing;
  query->standing = standing;
  Bytes body;
  EncodeQuestion(question, body);
  AskMessage answer = {};
  const int code =
      Ask(query, AskKind::kSubscribe, standing->id, body, kRequestMs, AskKind::kAccepted, &answer);
  if (code == SONDE_OK) {
    free(answer.body);
    return standing->id;
  }
  // An acceptance that comes too late must not start anything.
  if (code == SONDE_TIMEOUT) {
    query->connection.Send(AskKind::kCancel, standing->id, {}, Deadline(0));
  }
  standing->dead = true;
  if (!query->dispatching) Purge(query);
  return 0;
}

GroupState* FindGroup(Standing* standing, uint64_t group) {
  for (size_t i = 0; i < standing->group_count; ++i) {
    if (standing->groups[i].group == group) return &standing->groups[i];
  }
  const size_t count = standing->group_count;
  if (count == kMaxGroups) return nullptr;
  if ((count & (count - 1)) == 0) {  // full at every power of two
    void* const grown =
        realloc(standing->groups, (count == 0 ? 1 : 2 * count) * sizeof(GroupState));
    if (grown == nullptr) return nullptr;
    standing->groups = static_cast<GroupState*>(grown);
  }
  standing->groups[count] = {group, INT64_MIN, 0, false, false};
  return &standing->groups[standing->group_count++];
}

int TellWatch(Standing* standing, const sonde_result_t& news) {
  if (news.late != 0) return 0;
  int calls = 0;
  const sonde_condition_t& condition = standing->condition->condition;
  for (size_t s = 0; s < news.series_count; ++s) {
    const sonde_series_t& series = news.series[s];
    GroupState* const state = FindGroup(standing, GroupOf(condition.of, series));
    for (size_t p = 0; state != nullptr && p < series.point_count && !standing->dead; ++p) {
      const sonde_point_t& point = series.points[p];
      const Change change = Advance(condition, *state, point.time_ns, point.value);
      if (change == Change::kNone || (change == Change::kEnds && !standing->tell_end)) continue;
      const sonde_event_t event = {standing->id, change == Change::kBegins ? 1 : 0, point.time_ns,
                                   point.value, &series};
      standing->watch(standing->data, &event);
      ++calls;
    }
  }
  return calls;
}

// Handles one message of a subscription: the number of callbacks, or the negative of a code.
int Dispatch(sonde_query_t* query, const AskMessage& message) {
  Standing* const standing = Find(query, message.id);
  if (standing == nullptr) return 0;
  if (message.kind == AskKind::kFailed) {
    standing->dead = true;
    return -FailureOf(query, message);
  }
  sonde_result_t* const news = DecodeResult({message.body, message.size});
  if (news == nullptr) return -Fail(query, SONDE_LOST, "the daemon's values are malformed");
  news->missed = standing->missed + message.missed;
  standing->missed = 0;
  int calls = 1;
  if (standing->watch != nullptr) {
    calls = TellWatch(standing, *news);
  } else {
    standing->points(standing->data, news);
  }
  free(news);
  return calls;
}

int PollAll(sonde_query_t* query, int timeout_ms) {
  const Deadline patience(timeout_ms), none(0);
  int calls = 0;
  while (calls < kMaxCalls) {
    AskMessage message = {};
    if (!Pop(query, &message)) {
      const int code = query->connection.Receive(calls == 0 ? patience : none, &message);
      if (code == SONDE_TIMEOUT || (code != SONDE_OK && calls > 0)) break;
      if (code != SONDE_OK) return -Finish(query, code);
    }
    const int more = Dispatch(query, message);
    free(message.body);
    if (more < 0) return more;
    calls += more;
  }
  return calls;
}

}  // namespace
}  // namespace sonde::client

SONDE_EXPORT sonde_query_t* sonde_query_open(int timeout_ms, int* code) {
  int result = SONDE_SYSTEM;
  void* const memory = malloc(sizeof(sonde_query));
  sonde_query_t* query = memory == nullptr ? nullptr : new (memory) sonde_query;
  if (query != nullptr) result = query->connection.Open(Deadline(timeout_ms));
  if (query != nullptr && result != SONDE_OK) {
    query->~sonde_query();
    free(query);
    query = nullptr;
  }
  if (code != nullptr) *code = result;
  return query;
}

SONDE_EXPORT void sonde_query_close(sonde_query_t* query) {
  if (query == nullptr) return;
  AskMessage message;
  while (Pop(query, &message)) free(message.body);
  for (Standing* s = query->standing; s != nullptr; s = s->next) s->dead = true;
  Purge(query);
  query->~sonde_query();
  free(query);
}

SONDE_EXPORT int sonde_query_fd(const sonde_query_t* query) {
  return query == nullptr ? -1 : query->connection.fd();
}

SONDE_EXPORT const char* sonde_query_error(const sonde_query_t* query) {
  return query == nullptr ? Words(SONDE_OFF) : query->error;
}

SONDE_EXPORT double sonde_query_period(const sonde_query_t* query) {
  return query == nullptr ? 0 : static_cast<double>(query->connection.period()) * 1e-9;
}

SONDE_EXPORT int sonde_query_list(sonde_query_t* query, const char* metric, int timeout_ms,
                                  sonde_list_t** list) {
  if (list == nullptr) return SONDE_INVALID;
  *list = nullptr;
  int code = Check(query);
  if (code != SONDE_OK) return code;
  Bytes body;
  body.Text(metric == nullptr ? "" : metric);
  AskMessage answer = {};
  code = Ask(query, AskKind::kList, query->next_id++, body, timeout_ms, AskKind::kListing, &answer);
  return code == SONDE_OK ? TakeAnswer(query, answer, &DecodeList, list) : code;
}

SONDE_EXPORT void sonde_list_free(sonde_list_t* list) { free(list); }

SONDE_EXPORT int sonde_query_get(sonde_query_t* query, const sonde_question_t* question,
                                 int timeout_ms, sonde_result_t** result) {
  if (result == nullptr || question == nullptr) return SONDE_INVALID;
  *result = nullptr;
  int code = Check(query);
  if (code != SONDE_OK) return code;
  Bytes body;
  EncodeQuestion(*question, body);
  AskMessage answer = {};
  code = Ask(query, AskKind::kQuery, query->next_id++, body, timeout_ms, AskKind::kAnswer, &answer);
  return code == SONDE_OK ? TakeAnswer(query, answer, &DecodeResult, result) : code;
}

SONDE_EXPORT int sonde_query_alarm(sonde_query_t* query, const char* name, const char* rule,
                                   int timeout_ms) {
  int code = Check(query);
  if (code != SONDE_OK) return code;
  Bytes body;
  body.Text(name == nullptr ? "" : name);
  body.Text(rule == nullptr ? "" : rule);
  AskMessage answer = {};
  code = Ask(query, AskKind::kAlarm, query->next_id++, body, timeout_ms, AskKind::kAnswer, &answer);
  if (code == SONDE_OK) free(answer.body);
  return code;
}

SONDE_EXPORT void sonde_result_free(sonde_result_t* result) { free(result); }

SONDE_EXPORT const char* sonde_series_tag(const sonde_series_t* series, const char* key) {
  for (size_t i = 0; series != nullptr && i < series->tag_count; ++i) {
    if (strcmp(series->tags[i].key, key) == 0) return series->tags[i].value;
  }
  return nullptr;
}

SONDE_EXPORT uint64_t sonde_query_subscribe(sonde_query_t* query, const sonde_question_t* question,
                                            sonde_points_fn callback, void* data) {
  if (Check(query) != SONDE_OK || question == nullptr || callback == nullptr) return 0;
  Standing standing = {};
  standing.points = callback;
  standing.data = data;
  return Stand(query, *question, standing);
}

SONDE_EXPORT int sonde_query_cancel(sonde_query_t* query, uint64_t id) {
  const int code = Check(query);
  if (code != SONDE_OK) return code;
  Standing* const standing = Find(query, id);
  if (standing == nullptr) return Fail(query, SONDE_INVALID, "no subscription or watch of that id");
  standing->dead = true;
  if (!query->dispatching) Purge(query);
  return Finish(query, query->connection.Send(AskKind::kCancel, id, {}, Deadline(kRequestMs)));
}

SONDE_EXPORT uint64_t sonde_query_watch(sonde_query_t* query, const char* condition, int tell_end,
                                        sonde_watch_fn callback, void* data) {
  if (Check(query) != SONDE_OK || callback == nullptr) return 0;
  auto* const parsed = static_cast<ParsedCondition*>(malloc(sizeof(ParsedCondition)));
  if (parsed == nullptr) {
    Finish(query, SONDE_SYSTEM);
    return 0;
  }
  if (!ParseCondition(condition, parsed, query->error, sizeof(query->error))) {
    free(parsed);
    return 0;
  }
  Standing standing = {};
  standing.watch = callback;
  standing.data = data;
  standing.tell_end = tell_end != 0;
  standing.condition = parsed;
  return Stand(query, parsed->condition.of, standing);
}

SONDE_EXPORT uint64_t sonde_query_watch_if(sonde_query_t* query, const sonde_condition_t* condition,
                                           int tell_end, sonde_watch_fn callback, void* data) {
  if (Check(query) != SONDE_OK || condition == nullptr || callback == nullptr) return 0;
  if (condition->compare < SONDE_GREATER || condition->compare > SONDE_NOT_EQUAL ||
      !isfinite(condition->bound) || !(condition->for_seconds >= 0)) {
    Fail(query, SONDE_INVALID,
         "condition: expected a comparison SONDE_GREATER to SONDE_NOT_EQUAL, a finite bound and a "
         "time that is not negative");
    return 0;
  }
  auto* const parsed = static_cast<ParsedCondition*>(malloc(sizeof(ParsedCondition)));
  if (parsed == nullptr || !CopyForGroups(*condition, parsed)) {
    free(parsed);
    Fail(query, SONDE_LIMIT, "condition: at most 16 tags may be grouped by");
    return 0;
  }
  Standing standing = {};
  standing.watch = callback;
  standing.data = data;
  standing.tell_end = tell_end != 0;
  standing.condition = parsed;
  return Stand(query, condition->of, standing);
}

SONDE_EXPORT int sonde_query_poll(sonde_query_t* query, int timeout_ms) {
  const int code = Check(query);
  if (code != SONDE_OK) return -code;
  if (query->dispatching) {
    return -Fail(query, SONDE_INVALID, "sonde_query_poll() was called from within a callback");
  }
  query->dispatching = true;
  const int calls = PollAll(query, timeout_ms);
  query->dispatching = false;
  Purge(query);
  return calls;
}
