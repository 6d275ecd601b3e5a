// sonde roofline: how far a finished step and its phases are from what their nodes can do at most.
#include <memory>

#include "cli/command.h"
#include "cli/peaks/find.h"
#include "cli/roofline/text.h"
#include "cli/step/step_of.h"
#include "insight/steps/step_roofline.h"

namespace sonde::cli {
namespace {

struct RooflineOptions {
  std::string id;
  std::string peaks;
  bool json = false;
};

int Roofline(const RooflineOptions& options, const Environment& env) {
  const auto known = peaks::KnownPeaks(env, options.peaks);
  if (!known.ok()) return Fail(known.status());
  return ShowFinished(options.id, env,
                      [&](const Archive& archive, const FinishedStep& step) -> Result<std::string> {
                        const auto all =
                            insight::RooflineOf(archive, step.key, step.profile, *known);
                        if (!all.ok()) return all.status();
                        return options.json ? insight::RooflineToJson(*all, step.profile)
                                            : RooflineToText(*all, step.profile, env);
                      });
}

}  // namespace

void RegisterRoofline(Arguments app, Run& run) {
  const auto options = std::make_shared<RooflineOptions>();
  Arguments sub = app.Command(
      "roofline", "Place a step and its phases below what memory and processors can do at most");
  sub.Option("JOB[.STEP]", options->id, "As in 123, 123.0 or 123_4.0; it must have ended")
      .Required();
  sub.Option("--peaks", options->peaks, "Peaks from this file, not from the site's and the user's")
      .Type("FILE");
  sub.Flag("--json", options->json, "As JSON, with every value exactly");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Roofline(*options, env); };
  });
}

}  // namespace sonde::cli
