// Fuzzers of what comes over links share it.
#pragma once

#include <string>
#include <string_view>

#include "daemon/link/link.h"

// Takes all that is sent, and gives nothing.
class NoLink : public sonde::tree::Link {
 public:
  sonde::Status Send(uint8_t, std::string_view) override { return {}; }
  void CloseWhenSent() override {}
  size_t queued() const override { return 0; }
  void SetMaxMessage(size_t) override {}
  std::string peer() const override { return "peer"; }
};
