#include "web/openapi.h"

#include <cctype>

#include "profiles/json/writer.h"
#include "web/pages/pages.h"
#include "web/router.h"

namespace sonde::web {
namespace {

bool IsMediaType(std::string_view shape) {
  return !shape.empty() && shape[0] != '{' && shape[0] != '#' && shape[0] != '[';
}

void WriteContent(std::string_view shape, std::string_view example, JsonWriter& json) {
  json.Key("content").BeginObject();
  if (IsMediaType(shape)) {
    json.Key(shape).BeginObject().Key("schema").Raw(kText).EndObject();
  } else {
    json.Key("application/json").BeginObject().Key("schema").Raw(SchemaOf(shape));
    if (!example.empty()) json.Key("example").Raw(example);
    json.EndObject();
  }
  json.EndObject();
}

void WriteParams(const RouteDoc& doc, JsonWriter& json) {
  json.Key("parameters").BeginArray();
  const auto write = [&](const RouteParam& param) {
    json.BeginObject().Field("name", param.name).Field("in", "query");
    json.Field("description", param.about).Field("required", param.needed);
    json.Key("schema").Raw(param.schema).EndObject();
  };
  for (const RouteParam& param : doc.params) {
    if (param.name.empty()) break;
    write(param);
  }
  for (const RouteParam& param : doc.more_params) write(param);
  json.EndArray();
}

// `open`: for everybody, without the token.
void WriteAnswers(const RouteDoc& doc, bool open, JsonWriter& json) {
  json.Key("responses").BeginObject();
  json.Key("200").BeginObject().Field("description", "The answer");
  if (!doc.answer.empty()) WriteContent(doc.answer, "", json);
  json.EndObject();
  if (doc.also != 0) {
    json.Key(std::to_string(doc.also)).BeginObject();
    json.Field("description", "Done; there is no body");
    json.EndObject();
  }
  if (!open) {
    json.Key("401").BeginObject().Field("$ref", "#/components/responses/NoToken").EndObject();
  }
  json.Key("default").BeginObject().Field("$ref", "#/components/responses/Error").EndObject();
  json.EndObject();
}

// "getJobList" for GET /job/list: must be unique, so that /job/ is getJob_.
std::string OperationId(std::string_view method, std::string_view path) {
  std::string id(method);
  bool upper = true;
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      id += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      upper = false;
    } else {
      upper = true;
    }
  }
  return path.ends_with('/') ? id + "_" : id;
}

void WriteOperation(std::string_view method, std::string_view family, const Route& route,
                    const RouteDoc& doc, JsonWriter& json) {
  json.Key(method).BeginObject();
  json.Field("operationId", OperationId(method, route.path)).Field("summary", doc.about);
  json.Key("tags").BeginArray().Value(family).EndArray();
  WriteParams(doc, json);
  if ((method == "post" || method == "put") && !doc.body.empty()) {
    json.Key("requestBody").BeginObject();
    json.Field("required", !doc.example_body.empty());
    WriteContent(doc.body, doc.example_body, json);
    json.EndObject();
  }
  const bool open = IsPage(route.path);
  if (open) json.Key("security").BeginArray().EndArray();
  WriteAnswers(doc, open, json);
  if (!doc.example.empty()) json.Field("x-example", doc.example);
  json.EndObject();
}

void WritePaths(JsonWriter& json) {
  json.Key("paths").BeginObject();
  for (const RouteFamily& family : RouteFamilies()) {
    for (const Route& route : family.routes) {
      const RouteDoc& post = route.post_doc.about.empty() ? route.doc : route.post_doc;
      json.Key(route.path).BeginObject();
      if (route.get != nullptr) WriteOperation("get", family.name, route, route.doc, json);
      if (route.post != nullptr) WriteOperation("post", family.name, route, post, json);
      if (route.put != nullptr) WriteOperation("put", family.name, route, post, json);
      if (route.remove != nullptr)
        WriteOperation("delete", family.name, route, route.remove_doc, json);
      json.EndObject();
    }
  }
  json.EndObject();
}

void WriteComponents(JsonWriter& json) {
  json.Key("components").BeginObject();
  json.Key("securitySchemes").BeginObject();
  json.Key("bearer").BeginObject().Field("type", "http").Field("scheme", "bearer").EndObject();
  json.Key("basic").BeginObject().Field("type", "http").Field("scheme", "basic");
  json.Field("description", "any user name, the token as the password").EndObject();
  json.Key("proof").BeginObject().Field("type", "http").Field("scheme", "sonde");
  json.Field("description",
             "the token is proven, not sent: GET /api/v1/proof, and docs/endpoints.md, Access");
  json.EndObject().EndObject();
  json.Key("responses").BeginObject();
  json.Key("NoToken").BeginObject().Field("description", "No token, or a wrong one");
  WriteContent("#Error", "", json);
  json.EndObject().Key("Error").BeginObject();
  json.Field("description", "What was wrong, and what to do about it");
  WriteContent("#Error", "", json);
  json.EndObject().EndObject();
  json.Key("schemas").BeginObject();
  for (const NamedSchema& schema : NamedSchemas()) json.Key(schema.name).Raw(schema.json);
  json.EndObject().EndObject();
}

void GetOpenApi(const Context&, const Request&, Reply reply) {
  Response response;
  response.body = OpenApiJson();
  reply(std::move(response));
}

constexpr Route kRoutes[] = {{"/api/openapi.json",
                              GetOpenApi,
                              nullptr,
                              {.about = "This description", .answer = R"({"type":"object"})"}}};

}  // namespace

std::string SchemaOf(std::string_view shape) {
  if (shape.starts_with("[")) {
    return R"({"type":"array","items":)" + SchemaOf(shape.substr(1, shape.size() - 2)) + "}";
  }
  if (!shape.starts_with("#")) return std::string(shape);
  std::string reference = R"({"$ref":"#/components/schemas/)";
  return reference.append(shape.substr(1)).append("\"}");
}

std::string OpenApiJson() {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("openapi", "3.1.0");
  json.Key("info").BeginObject().Field("title", "Sonde");
  json.Field("description", "Telemetry of Slurm job steps, running and finished.");
  json.Field("version", SONDE_VERSION);
  json.Key("license").BeginObject().Field("name", "Apache-2.0").EndObject().EndObject();
  json.Key("servers").BeginArray().BeginObject().Field("url", "/").EndObject().EndArray();
  json.Key("security").BeginArray();
  for (const char* scheme : {"bearer", "basic", "proof"}) {
    json.BeginObject().Key(scheme).BeginArray().EndArray().EndObject();
  }
  json.EndArray();
  WritePaths(json);
  WriteComponents(json);
  json.EndObject();
  return out;
}

std::span<const Route> OpenApiRoutes() { return kRoutes; }

}  // namespace sonde::web
