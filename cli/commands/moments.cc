// sonde annotate, phase, figure: a script reports events of its step, besides numbers over time.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/script_phase.h"
#include "cli/tell.h"
#include "core/metric.h"
#include "core/text/remark.h"
#include "libclient/layout.h"
#include "libclient/sonde.h"

namespace sonde::cli {
namespace {

struct MomentsOptions {
  bool strict = false;
  std::vector<std::string> words;
  std::string what;
  std::string unit;
  std::pair<std::string, double> figure;
};

int Annotate(const MomentsOptions& options) {
  char remark[kMaxRemarkLength + 1];
  if (MakeRemark(fmt::format("{}", fmt::join(options.words, " ")), remark) == 0) return kDone;
  return Told("the remark", sonde_annotate(remark), options.strict);
}

int Phase(const MomentsOptions& options) {
  const std::string& name = options.words.front();
  const uint8_t kind =
      options.what == "begin" ? client::kMomentPhaseBegin : client::kMomentPhaseEnd;
  return Told(fmt::format("the {} of phase {}", options.what, name),
              client::TellScriptPhase(kind, name.c_str()), options.strict);
}

int Figure(const MomentsOptions& options) {
  const auto& [name, value] = options.figure;
  return Told(name, sonde_figure(name.c_str(), value, options.unit.c_str()), options.strict);
}

Arguments Add(Arguments app, const char* name, const char* help, bool* strict) {
  Arguments sub = app.Command(name, help);
  sub.Flag("--strict", *strict, std::string(kStrictHelp));
  return sub;
}

}  // namespace

void RegisterAnnotate(Arguments app, Run& run) {
  const auto options = std::make_shared<MomentsOptions>();
  Arguments sub = Add(app, "annotate", "Put a remark on the plots of the step", &options->strict);
  sub.Option("TEXT", options->words, "What to say, in one word or several").Required();
  sub.OnRead(
      [options, &run] { run = [options](const Environment&) { return Annotate(*options); }; });
}

void RegisterPhase(Arguments app, Run& run) {
  const auto options = std::make_shared<MomentsOptions>();
  Arguments sub =
      Add(app, "phase", "Tell that a phase of a script begins or ends", &options->strict);
  sub.Option("begin|end", options->what, "Which of them").Required().OneOf({"begin", "end"});
  sub.Checked("NAME", "The name of the phase",
              [options](const std::string& text) -> Status {
                options->words = {text};
                if (names::IsTagValue(text)) return {};
                return {Code::kInvalid,
                        fmt::format("expected 1 to {} bytes of text without control characters",
                                    kMaxNameLength)};
              })
      .Required();
  sub.OnRead([options, &run] { run = [options](const Environment&) { return Phase(*options); }; });
}

void RegisterFigure(Arguments app, Run& run) {
  const auto options = std::make_shared<MomentsOptions>();
  Arguments sub = Add(app, "figure", "Tell what the run is judged by", &options->strict);
  sub.Checked("--unit", "Such as seconds, bytes or 1",
              [options](const std::string& text) {
                options->unit = text;
                return CheckUnit(text);
              })
      .Type("UNIT");
  sub.Checked("FIGURE", "The figure of merit",
              [options](const std::string& text) {
                auto figure = ParseAssignment(text);
                if (!figure.ok()) return figure.status();
                options->figure = *std::move(figure);
                return Status();
              })
      .Required()
      .Type("NAME=VALUE");
  sub.OnRead([options, &run] { run = [options](const Environment&) { return Figure(*options); }; });
}

}  // namespace sonde::cli
