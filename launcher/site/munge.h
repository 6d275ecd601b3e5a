// libmunge, where this process has it: then Slurm authenticates by munge, and munge wraps what only
// one user is to read on its way through Slurm's messages, which are not encrypted.
//
// It is not linked: where Slurm authenticates in another way it may not be installed.
//
// Thread safety: Slurm's one thread that calls the plugin.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace sonde::launch {

class Munge {
 public:
  // A credential of munge's begins so.
  static constexpr std::string_view kBegins = "MUNGE:";

  // nullopt: this process has not loaded it, or one without what is needed.
  static std::optional<Munge> Find();

  // `socket`: munged's; "" for where it is unless Slurm is told otherwise. Only `reader` can open
  // what comes out.
  Result<std::string> Wrap(std::string_view text, const std::string& socket, uid_t reader) const;
  // The text, also of a credential that has expired or was opened before: each node of a step opens
  // the same one, when its part of the step begins.
  Result<std::string> Open(const std::string& credential, const std::string& socket) const;

 private:
  struct Functions;
  explicit Munge(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}
  Status Failure(int error) const;

  std::shared_ptr<const Functions> functions_;  // of a library that stays loaded
};

}  // namespace sonde::launch
