// Keys of the archive and names of live directories, as another version or somebody else may have
// left them. What is accepted as a block's key is what is written for that block.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "profiles/records/keys.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sonde;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)keys::DescribeKey(text);
  (void)keys::DescribeKey(keys::KeyOfName(text));
  (void)keys::ParseSchema(text);
  (void)keys::ProfileOfTimeIndex(text);
  (void)keys::ProfileOfJobIndex(text);
  (void)keys::StartOfTimeIndex(text);
  (void)keys::UserOfTotals(text);
  if (const auto term = keys::ParseTerm(text)) {
    (void)keys::ByTimeOfSuffix(term->suffix);
    if (!text.ends_with(term->profile)) std::abort();
  }
  const std::string_view profile = text.substr(0, text.find('\n'));
  const std::string_view key = text.substr(std::min(profile.size() + 1, text.size()));
  const auto block = keys::ParseBlock(profile, key);
  if (block && keys::Block(profile, *block) != key) std::abort();
  return 0;
}
