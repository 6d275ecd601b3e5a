// OpenTSDB's annotations: those of steps can be read; a store that takes points also stores and
// deletes them.
#include <algorithm>
#include <charconv>
#include <set>

#include "core/text/split.h"
#include "web/http/json_input.h"
#include "web/opentsdb/handlers.h"
#include "web/opentsdb/request.h"
#include "web/source/point_sink.h"

namespace sonde::web {
namespace {

namespace json = boost::json;

constexpr size_t kMaxCustom = 64;

Result<Nanos> TimeParam(const Context& context, const Request& request, std::string_view name,
                        Nanos fallback) {
  const std::string* text = request.Param(name);
  if (text == nullptr || text->empty()) return fallback;
  const Result<Nanos> time = ParseOpenTsdbTime(*text, context.clock->Now());
  if (!time.ok()) return time.status().Within(name);
  return time;
}

// Annotations are distinguished by seconds, whatever their exact start is.
bool SameSecond(Nanos a, Nanos b) { return a / kSecond == b / kSecond; }

void WriteNotes(const std::vector<Note>& notes, JsonWriter& json) {
  json.BeginArray();
  for (const Note& note : notes) WriteNote(note, json);
  json.EndArray();
}

}  // namespace

Response NothingIsPut() {
  return ErrorResponse(403,
                       "nothing is written here over HTTP; `sonde serve --ephemeral` has a "
                       "store that takes points");
}

void WriteNote(const Note& note, JsonWriter& json) {
  json.BeginObject().Field("tsuid", note.tsuid);
  json.Field("startTime", note.start / kSecond).Field("endTime", note.end / kSecond);
  json.Field("description", note.description).Field("notes", note.notes);
  if (!note.custom.empty()) {
    json.Key("custom").BeginObject();
    for (const auto& [key, value] : note.custom) json.Field(key, value);
    json.EndObject();
  }
  json.EndObject();
}

Status ReadCustom(const json::value& value, Note& note) {
  const json::object* custom = value.if_object();
  if (custom == nullptr || custom->size() > kMaxCustom) {
    return Wrong("custom", "an object of few texts");
  }
  for (const auto& [key, text] : *custom) {
    SONDE_RETURN_IF_ERROR(ReadText(text, "custom", note.custom[std::string(View(key))]));
  }
  return {};
}

// The fields of the body replace those of `note`.
Status ReadNote(const json::object& object, Nanos now, Note& note) {
  for (const auto& [name, value] : object) {
    const std::string_view key = View(name);
    if (value.is_null()) continue;
    Status read;
    if (key == "startTime") read = ReadTime(value, key, now, note.start);
    if (key == "endTime") read = ReadTime(value, key, now, note.end);
    if (key == "tsuid") read = ReadText(value, key, note.tsuid);
    if (key == "description") read = ReadText(value, key, note.description);
    if (key == "notes") read = ReadText(value, key, note.notes);
    if (key == "custom") read = ReadCustom(value, note);
    if (!read.ok()) return read;
  }
  if (note.start < kSecond) return {Code::kInvalid, "Missing start time"};
  return {};
}

Result<Note> ParseAnnotationBody(std::string_view body, Nanos now) {
  return WithObject<Note>(body, [now](const json::object& object) -> Result<Note> {
    Note note;
    SONDE_RETURN_IF_ERROR(ReadNote(object, now, note));
    return note;
  });
}

namespace {

// POST keeps the fields that it does not name; PUT replaces all.
Result<Note> Store(const json::object& object, bool keep, Nanos now, PointSink& sink) {
  Note note;
  SONDE_RETURN_IF_ERROR(ReadNote(object, now, note));
  Result<Note> known = sink.FindNote(note.tsuid, note.start);
  if (known.ok()) {
    // Annotations are distinguished by seconds: the existing one is removed.
    if (keep) {
      note = *known;
      SONDE_RETURN_IF_ERROR(ReadNote(object, now, note));
    }
    sink.RemoveNotes({note.tsuid}, known->start, known->start);
  }
  SONDE_RETURN_IF_ERROR(sink.PutNote(note));
  return note;
}

}  // namespace

Task<Response> GetAnnotation(const Context& context, const Request& request) {
  const Result<Nanos> start = TimeParam(context, request, "start_time", 0);
  if (!start.ok()) co_return ErrorResponse(start.status());
  if (*start < kSecond) co_return ErrorResponse(400, "Missing start time");
  const std::string* tsuid = request.Param("tsuid");
  const std::vector<Note> notes =
      co_await Ask(*context.series, &StepSeries::Notes, *start, *start + kSecond - 1);
  for (const Note& note : notes) {
    if (!SameSecond(note.start, *start) || note.tsuid != (tsuid == nullptr ? "" : *tsuid)) continue;
    Response response;
    JsonWriter json(response.body);
    WriteNote(note, json);
    co_return response;
  }
  co_return ErrorResponse(404, "Unable to locate annotation in storage");
}

Task<Response> GetAnnotations(const Context& context, const Request& request) {
  const Result<Nanos> start = TimeParam(context, request, "start_time", 0);
  if (!start.ok()) co_return ErrorResponse(start.status());
  if (*start < kSecond) co_return ErrorResponse(400, "Missing start time");
  const Result<Nanos> end = TimeParam(context, request, "end_time", context.clock->Now());
  if (!end.ok()) co_return ErrorResponse(end.status());
  const std::vector<Note> notes = co_await Ask(*context.series, &StepSeries::Notes, *start, *end);
  Response response;
  JsonWriter json(response.body);
  WriteNotes(notes, json);
  co_return response;
}

namespace {

void StoreOne(const Context& context, const Request& request, bool keep, const Reply& reply) {
  PointSink* sink = context.sink;
  if (sink == nullptr) return reply(NothingIsPut());
  const Result<Note> note = WithObject<Note>(request.body, [&](const json::object& object) {
    return Store(object, keep, context.clock->Now(), *sink);
  });
  if (!note.ok()) return reply(ErrorResponse(note.status()));
  Response response;
  JsonWriter json(response.body);
  WriteNote(*note, json);
  reply(std::move(response));
}

// A list; notes before a wrong one are stored.
void StoreMany(const Context& context, const Request& request, bool keep, const Reply& reply) {
  PointSink* sink = context.sink;
  if (sink == nullptr) return reply(NothingIsPut());
  using Notes = std::vector<Note>;
  const auto notes = WithJson<Notes>(request.body, [&](const json::value& body) -> Result<Notes> {
    const json::array* list = body.if_array();
    if (list == nullptr || list->size() > kMaxNotes) {
      return Status(Code::kInvalid, "the body must be a list of annotations");
    }
    Notes stored;
    for (const json::value& one : *list) {
      const json::object* object = one.if_object();
      if (object == nullptr) return Status(Code::kInvalid, "an annotation must be an object");
      Result<Note> note = Store(*object, keep, context.clock->Now(), *sink);
      if (!note.ok()) return note.status();
      stored.push_back(*std::move(note));
    }
    return stored;
  });
  if (!notes.ok()) return reply(ErrorResponse(notes.status()));
  Response response;
  JsonWriter json(response.body);
  WriteNotes(*notes, json);
  reply(std::move(response));
}

// Which annotations to delete: by parameters, or by a body.
struct Removal {
  std::set<std::string> tsuids;
  bool global = false;
  Nanos start = 0;
  Nanos end = 0;
};

Status ReadTsuids(const json::value& value, std::set<std::string>& out) {
  const json::array* list = value.if_array();
  if (list == nullptr || list->size() > kMaxNotes) return Wrong("tsuids", "a list of texts");
  for (const json::value& one : *list) {
    std::string text;
    SONDE_RETURN_IF_ERROR(ReadText(one, "tsuids", text));
    out.insert(std::move(text));
  }
  return {};
}

std::set<std::string> SplitAtCommas(std::string_view text) {
  std::set<std::string> words;
  for (const std::string_view word : Split(text, ',')) {
    if (!word.empty()) words.emplace(word);
  }
  return words;
}

Result<Removal> RemovalInBody(const Request& request, Nanos now) {
  Removal removal;
  removal.end = now;
  return WithObject<Removal>(request.body, [&](const json::object& object) -> Result<Removal> {
    for (const auto& [name, value] : object) {
      const std::string_view key = View(name);
      if (value.is_null()) continue;
      Status read;
      if (key == "startTime") read = ReadTime(value, key, now, removal.start);
      if (key == "endTime") read = ReadTime(value, key, now, removal.end);
      if (key == "global") read = ReadBool(value, key, removal.global);
      if (key == "tsuids") read = ReadTsuids(value, removal.tsuids);
      if (!read.ok()) return read;
    }
    return removal;
  });
}

Result<Removal> RemovalOf(const Context& context, const Request& request) {
  const Nanos now = context.clock->Now();
  if (!request.body.empty()) return RemovalInBody(request, now);
  Removal removal;
  const Result<Nanos> start = TimeParam(context, request, "start_time", 0);
  const Result<Nanos> end = TimeParam(context, request, "end_time", now);
  if (!start.ok()) return start.status();
  if (!end.ok()) return end.status();
  removal.start = *start;
  removal.end = *end;
  const std::string* global = request.Param("global");
  removal.global = global != nullptr && *global != "false";
  if (const std::string* tsuids = request.Param("tsuids")) {
    removal.tsuids = SplitAtCommas(*tsuids);
  }
  return removal;
}

}  // namespace

void PostAnnotation(const Context& context, const Request& request, Reply reply) {
  StoreOne(context, request, true, reply);
}
void PutAnnotation(const Context& context, const Request& request, Reply reply) {
  StoreOne(context, request, false, reply);
}
void PostAnnotations(const Context& context, const Request& request, Reply reply) {
  StoreMany(context, request, true, reply);
}
void PutAnnotations(const Context& context, const Request& request, Reply reply) {
  StoreMany(context, request, false, reply);
}

void DeleteAnnotation(const Context& context, const Request& request, Reply reply) {
  PointSink* sink = context.sink;
  if (sink == nullptr) return reply(NothingIsPut());
  Note note;
  if (!request.body.empty()) {
    Result<Note> named = ParseAnnotationBody(request.body, context.clock->Now());
    if (!named.ok()) return reply(ErrorResponse(named.status()));
    note = *std::move(named);
  } else {
    const Result<Nanos> start = TimeParam(context, request, "start_time", 0);
    if (!start.ok()) return reply(ErrorResponse(start.status()));
    note.start = *start;
    if (const std::string* tsuid = request.Param("tsuid")) note.tsuid = *tsuid;
  }
  if (note.start < kSecond) return reply(ErrorResponse(400, "Missing start time"));
  const Nanos second = note.start - note.start % kSecond;
  if (sink->RemoveNotes({note.tsuid}, second, second + kSecond - 1) == 0) {
    return reply(ErrorResponse(404, "Unable to locate annotation in storage"));
  }
  Response response;
  response.status = 204;
  reply(std::move(response));
}

void DeleteAnnotations(const Context& context, const Request& request, Reply reply) {
  PointSink* sink = context.sink;
  if (sink == nullptr) return reply(NothingIsPut());
  Result<Removal> removal = RemovalOf(context, request);
  if (!removal.ok()) return reply(ErrorResponse(removal.status()));
  if (removal->start < kSecond) return reply(ErrorResponse(400, "Missing start time"));
  if (!removal->global && removal->tsuids.empty()) {
    return reply(ErrorResponse(400, "expected tsuids, or global"));
  }
  std::set<std::string> wanted = removal->tsuids;
  if (removal->global) wanted.insert("");
  const size_t deleted = sink->RemoveNotes(wanted, removal->start, removal->end);
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Key("tsuids").BeginArray();
  for (const std::string& tsuid : removal->tsuids) json.Value(tsuid);
  json.EndArray().Field("global", removal->global);
  json.Field("startTime", removal->start / kMillisecond);
  json.Field("endTime", removal->end / kMillisecond).Field("totalDeleted", deleted).EndObject();
  reply(std::move(response));
}

}  // namespace sonde::web
