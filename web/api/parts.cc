#include "web/api/parts.h"

#include "core/text/split.h"

namespace sonde::web {

Result<std::vector<std::string>> PartsOf(const Request& request, std::string_view name,
                                         size_t most) {
  std::vector<std::string> parts;
  for (const auto& [one, value] : request.params) {
    if (one != name || value.empty()) continue;
    for (const std::string_view part : Split(value, ',')) {
      parts.emplace_back(part);
      if (part.empty()) {
        return Status(Code::kInvalid, "parameter " + std::string(name) +
                                          ": expected names between commas, and one is empty");
      }
      if (parts.size() > most) {
        return Status(Code::kInvalid, "parameter " + std::string(name) + ": more than " +
                                          std::to_string(most) + " are named");
      }
    }
  }
  return parts;
}

}  // namespace sonde::web
