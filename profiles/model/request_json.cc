#include "profiles/model/request_json.h"

#include <boost/json/value.hpp>

#include "profiles/json/kept.h"

namespace sonde {
namespace {

namespace json = boost::json;

// Of a job without a time limit.
constexpr std::string_view kNone = "none";

// The object of an exit, for what is kept of it.
std::string KeptExit(const TaskExit& exit) { return "exit " + std::to_string(exit.rank); }

JobRequest RequestFrom(const json::value& value, std::string& error) {
  JsonFields fields(value, error, "request");
  JobRequest request;
  const json::value* limit = fields.Find("time_limit");
  if (limit != nullptr && limit->is_string() && limit->get_string() == kNone) {
    request.time_limit = JobRequest::kNoLimit;
  } else {
    fields.Read("time_limit", request.time_limit, Nanos{0});
  }
  fields.Read("submitted", request.submitted, Nanos{0});
  fields.Read("begun", request.begun, Nanos{0});
  fields.Read("cpus", request.cpus);
  fields.Read("qos", request.qos, 256);
  fields.Read("features", request.features, 1024);
  fields.Read("gres", request.gres, 1024);
  fields.Keep(request.kept);
  return request;
}

}  // namespace

void WriteExits(JsonWriter& w, const JobDescription& job) {
  if (job.exits.empty()) return;
  w.Key("exits").BeginArray();
  for (const TaskExit& exit : job.exits) {
    w.BeginObject().Field("task", exit.rank).Field("status", exit.status);
    WriteKept(w, job.kept, KeptExit(exit));
    w.EndObject();
  }
  w.EndArray();
  if (job.exits_left_out != 0) w.Field("exits_left_out", job.exits_left_out);
}

void WriteRequest(JsonWriter& w, const JobDescription& job) {
  if (!job.request) return;
  const JobRequest& request = *job.request;
  w.Key("request").BeginObject();
  if (request.time_limit == JobRequest::kNoLimit) {
    w.Key("time_limit").Value(kNone);
  } else if (request.time_limit != 0) {
    w.Field("time_limit", request.time_limit);
  }
  if (request.submitted != 0) w.Field("submitted", request.submitted);
  if (request.begun != 0) w.Field("begun", request.begun);
  if (request.cpus != 0) w.Field("cpus", request.cpus);
  if (!request.qos.empty()) w.Field("qos", request.qos);
  if (!request.features.empty()) w.Field("features", request.features);
  if (!request.gres.empty()) w.Field("gres", request.gres);
  WriteKept(w, request.kept);
  w.EndObject();
}

void ReadExits(JsonFields& fields, std::string& error, JobDescription& job) {
  fields.Read("exits_left_out", job.exits_left_out);
  const json::array* values = fields.Array("exits", kMaxTaskExits);
  if (values == nullptr) return;
  job.exits.reserve(values->size());
  for (const json::value& value : *values) {
    JsonFields one(value, error, "exits");
    TaskExit exit;
    one.Read("task", exit.rank);
    one.Read("status", exit.status);
    if (!job.exits.empty() && exit.rank <= job.exits.back().rank) {
      one.Wrong("exits", "tasks in ascending order");
      return;
    }
    one.Keep(job.kept, KeptExit(exit));
    job.exits.push_back(exit);
  }
}

void ReadRequest(JsonFields& fields, std::string& error, JobDescription& job) {
  if (const json::value* request = fields.Find("request")) {
    job.request = RequestFrom(*request, error);
  }
}

}  // namespace sonde
