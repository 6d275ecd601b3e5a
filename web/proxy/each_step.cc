#include "web/proxy/each_step.h"

namespace sonde::web {

Task<std::vector<std::optional<Response>>> ForwardToEach(const Context& context, std::string path,
                                                         std::vector<JobStep> ids) {
  co_return co_await AskEach<std::optional<Response>>(
      ids.size(), [&](size_t i, StepControl::ForwardCallback callback) {
        Request one;
        if (!ParseTarget(path + "?job=" + ids[i].ToString(), one).ok()) one.path = path;
        context.control->Forward(ids[i], one, std::move(callback));
      });
}

Response Together(const std::vector<std::optional<Response>>& answers, std::string_view brackets) {
  std::string all;
  for (const std::optional<Response>& answer : answers) {
    if (!answer || answer->status != 200 || answer->body.size() <= 2) continue;
    const std::string& body = answer->body;
    if (body.front() != brackets.front() || body.back() != brackets.back()) continue;
    all += (all.empty() ? "" : ",") + body.substr(1, body.size() - 2);
  }
  Response response;
  response.body = brackets.front() + all + brackets.back();
  return response;
}

}  // namespace sonde::web
