#include "profiles/live/endpoint.h"

#include <boost/json.hpp>

#include "profiles/json/parse.h"
#include "profiles/json/writer.h"

namespace sonde {
namespace {

namespace json = boost::json;

std::string Text(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return "";
  return {value->get_string().data(), value->get_string().size()};
}

template <typename T>
T Number(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  json::error_code error;
  const T number = value == nullptr ? 0 : value->to_number<T>(error);
  return error ? 0 : number;
}

}  // namespace

std::string ToJson(const Endpoint& endpoint) {
  std::string json;
  JsonWriter(json)
      .BeginObject()
      .Field("host", endpoint.host)
      .Field("address", endpoint.address)
      .Field("port", endpoint.port)
      .Field("token", endpoint.token)
      .Field("pid", endpoint.pid)
      .EndObject();
  return json;
}

Result<Endpoint> EndpointFromJson(std::string_view text) {
  const auto value = ParseJson(text, "an endpoint");
  if (!value.ok()) return value.status();
  const json::object* object = value->if_object();
  if (object == nullptr) return Status(Code::kCorrupt, "read an endpoint: expected an object");
  Endpoint endpoint;
  endpoint.host = Text(*object, "host");
  endpoint.address = Text(*object, "address");
  endpoint.port = Number<uint16_t>(*object, "port");
  endpoint.token = Text(*object, "token");
  endpoint.pid = Number<int>(*object, "pid");
  if (endpoint.host.empty() || endpoint.address.empty() || endpoint.port == 0) {
    return Status(Code::kCorrupt, "read an endpoint: host, address or port is missing");
  }
  return endpoint;
}

}  // namespace sonde
