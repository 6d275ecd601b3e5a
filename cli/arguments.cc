#include "cli/arguments.h"

#include <CLI/CLI.hpp>

namespace sonde::cli {
namespace {

void ThrowIfBad(const std::string& name, const Status& status) {
  if (!status.ok()) throw CLI::ValidationError(name, std::string(status.message()));
}

}  // namespace

Argument Argument::Required() const { return Argument(option_->required()); }

Argument Argument::Type(const std::string& name) const {
  return Argument(option_->type_name(name));
}

Argument Argument::ShowDefault() const { return Argument(option_->capture_default_str()); }

Argument Argument::OneOf(const std::vector<std::string>& values) const {
  return Argument(option_->check(CLI::IsMember(values)));
}

Argument Argument::Within(uint64_t low, uint64_t high) const {
  return Argument(option_->check(CLI::Range(low, high)));
}

Argument Argument::ExistingFile() const { return Argument(option_->check(CLI::ExistingFile)); }

Argument Argument::Checked(std::function<Status(const std::string&)> check) const {
  return Argument(option_->check([check = std::move(check)](const std::string& value) {
    return std::string(check(value).message());
  }));
}

Argument Argument::Repeated() const {
  return Argument(option_->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
}

Argument Argument::Between(char separator) const { return Argument(option_->delimiter(separator)); }

bool Argument::given() const { return option_->count() > 0; }

Arguments Arguments::Command(const std::string& name, const std::string& help) const {
  return Arguments(*app_->add_subcommand(name, help));
}

void Arguments::RequireCommand() const { app_->require_subcommand(1); }

void Arguments::PassOn() const { app_->fallthrough(); }

void Arguments::PassOnFromAll() const {
  for (CLI::App* command : app_->get_subcommands({})) command->fallthrough();
}

Argument Arguments::Flag(const std::string& names, bool& given, const std::string& help) const {
  return Argument(app_->add_flag(names, given, help));
}

Argument Arguments::Option(const std::string& names, std::string& value,
                           const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Arguments::Option(const std::string& names, std::vector<std::string>& values,
                           const std::string& help) const {
  return Argument(app_->add_option(names, values, help));
}

Argument Arguments::Option(const std::string& names, int& value, const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Arguments::Option(const std::string& names, uint16_t& value,
                           const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Arguments::Option(const std::string& names, uint64_t& value,
                           const std::string& help) const {
  return Argument(app_->add_option(names, value, help));
}

Argument Arguments::Checked(const std::string& names, const std::string& help, Set set) const {
  return Argument(app_->add_option_function<std::string>(
      names,
      [names, set = std::move(set)](const std::string& text) { ThrowIfBad(names, set(text)); },
      help));
}

Argument Arguments::CheckedEach(const std::string& names, const std::string& help, Set set) const {
  return Argument(app_->add_option_function<std::vector<std::string>>(
                          names,
                          [names, set = std::move(set)](const std::vector<std::string>& texts) {
                            for (const std::string& text : texts) ThrowIfBad(names, set(text));
                          },
                          help)
                      ->allow_extra_args(false));
}

void Arguments::OnRead(const std::function<void()>& f) const { app_->callback(f); }

void Arguments::OnRead(const std::string& name, const std::function<Status()>& f) const {
  app_->callback([name, f] { ThrowIfBad(name, f()); });
}

}  // namespace sonde::cli
