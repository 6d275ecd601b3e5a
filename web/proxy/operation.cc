#include "web/proxy/operation.h"

#include <boost/json.hpp>
#include <utility>

#include "profiles/json/writer.h"

namespace sonde::web {

Response Success(std::string_view operation) {
  Response response;
  JsonWriter(response.body)
      .BeginObject()
      .Field("operation", operation)
      .Field("success", true)
      .EndObject();
  return response;
}

Response AsOperation(Response response) {
  if (response.status < 400 || !response.body.starts_with(R"({"error":)")) return response;
  boost::system::error_code failed;
  const boost::json::value body = boost::json::parse(response.body, failed);
  if (failed) return response;
  const boost::json::value* message = body.find_pointer("/error/message", failed);
  if (message == nullptr || !message->is_string()) return response;
  std::string text;
  JsonWriter(text)
      .BeginObject()
      .Field("operation",
             std::string_view(message->get_string().data(), message->get_string().size()))
      .Field("success", false);
  response.body = text + "," + response.body.substr(1);
  return response;
}

}  // namespace sonde::web
