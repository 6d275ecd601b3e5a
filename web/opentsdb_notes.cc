// OpenTSDB's annotations: those of steps are read, a store that takes points takes them too.
#include <charconv>

#include "web/json_input.h"
#include "web/opentsdb_handlers.h"
#include "web/opentsdb_request.h"
#include "web/point_sink.h"

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

// Annotations are told apart by seconds, whatever their start is.
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

Result<Note> ParseAnnotationBody(std::string_view body, Nanos now) {
  return WithObject<Note>(body, [now](const json::object& object) -> Result<Note> {
    Note note;
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
    if (note.start < kSecond) return Status(Code::kInvalid, "Missing start time");
    return note;
  });
}

void GetAnnotation(const Context& context, const Request& request, Reply reply) {
  const Result<Nanos> start = TimeParam(context, request, "start_time", 0);
  if (!start.ok()) return reply(ErrorResponse(start.status()));
  if (*start < kSecond) return reply(ErrorResponse(400, "Missing start time"));
  const std::string* tsuid = request.Param("tsuid");
  for (const Note& note : context.source->Notes(*start, *start + kSecond - 1)) {
    if (!SameSecond(note.start, *start) || note.tsuid != (tsuid == nullptr ? "" : *tsuid)) continue;
    Response response;
    JsonWriter json(response.body);
    WriteNote(note, json);
    return reply(std::move(response));
  }
  reply(ErrorResponse(404, "Unable to locate annotation in storage"));
}

void GetAnnotations(const Context& context, const Request& request, Reply reply) {
  const Result<Nanos> start = TimeParam(context, request, "start_time", 0);
  if (!start.ok()) return reply(ErrorResponse(start.status()));
  if (*start < kSecond) return reply(ErrorResponse(400, "Missing start time"));
  const Result<Nanos> end = TimeParam(context, request, "end_time", context.clock->Now());
  if (!end.ok()) return reply(ErrorResponse(end.status()));
  Response response;
  JsonWriter json(response.body);
  WriteNotes(context.source->Notes(*start, *end), json);
  reply(std::move(response));
}

void PostAnnotation(const Context& context, const Request& request, Reply reply) {
  PointSink* sink = context.source->sink();
  if (sink == nullptr) return reply(NothingIsPut());
  const Result<Note> note = ParseAnnotationBody(request.body, context.clock->Now());
  if (!note.ok()) return reply(ErrorResponse(note.status()));
  if (const Status put = sink->PutNote(*note); !put.ok()) return reply(ErrorResponse(put));
  Response response;
  JsonWriter json(response.body);
  WriteNote(*note, json);
  reply(std::move(response));
}

}  // namespace sonde::web
