#include "web/source/kept_settings.h"

#include <utility>

namespace sonde::web {

std::string KeptSettings::Get() const {
  const std::lock_guard lock(mutex_);
  return text_;
}

void KeptSettings::Keep(std::string text) {
  const std::lock_guard lock(mutex_);
  text_ = std::move(text);
}

}  // namespace sonde::web
