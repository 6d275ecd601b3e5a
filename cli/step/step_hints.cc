#include "cli/step/step_hints.h"

#include <fmt/core.h>

#include <filesystem>

#include "insight/hints/step_hints.h"

namespace sonde::cli {

std::string SiteHintRules(const Environment& env) {
  return std::filesystem::path(env.config_path).parent_path() / "hints.d";
}

std::vector<ReportHint> HintsOf(const Archive& archive, const std::string& key,
                                const Profile& profile, const std::vector<NodeRow>& nodes,
                                const Environment& env) {
  const auto all =
      insight::HintsOfStep(archive, key, profile, nodes, SiteHintRules(env), Clock::System().Now());
  if (all.ok()) return insight::ForReport(all->hints);
  Note(fmt::format("there are no hints: {}", all.status().message()));
  return {};
}

}  // namespace sonde::cli
