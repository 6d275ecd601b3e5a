// Reading an environment that is not necessarily our own: srun's, or the job's as slurmstepd
// holds it.
//
// Does not own the array; valid as long as Slurm keeps it, that is during one callback.
#pragma once

#include <optional>
#include <string_view>

namespace sonde::launch {

class Environment {
 public:
  Environment() = default;
  explicit Environment(const char* const* variables) : variables_(variables) {}

  std::optional<std::string_view> Find(std::string_view name) const {
    for (const char* const* v = variables_; v != nullptr && *v != nullptr; ++v) {
      const std::string_view entry(*v);
      if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
        return entry.substr(name.size() + 1);
      }
    }
    return std::nullopt;
  }
  // The first of the names that is set and not empty, or "".
  template <typename... Name>
  std::string_view First(Name... name) const {
    for (const std::string_view candidate : {std::string_view(name)...}) {
      const std::string_view value = Find(candidate).value_or("");
      if (!value.empty()) return value;
    }
    return {};
  }
  // Calls f(entry) with every NAME=VALUE, a zero-terminated string.
  template <typename F>
  void ForEach(F&& f) const {
    for (const char* const* v = variables_; v != nullptr && *v != nullptr; ++v) f(*v);
  }

 private:
  const char* const* variables_ = nullptr;
};

}  // namespace sonde::launch
