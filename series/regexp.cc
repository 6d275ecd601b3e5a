#define PCRE2_CODE_UNIT_WIDTH 8

#include "series/regexp.h"

#include <fmt/format.h>
#include <pcre2.h>

namespace sonde {
namespace {

constexpr uint32_t kHeapLimit = 1024;  // of one match, KiB

struct Deleter {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};

PCRE2_SPTR Units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string ErrorText(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

Result<Regexp> Regexp::Compile(std::string_view pattern) {
  // Text that is not UTF-8 is taken as it is; \C could tear characters apart.
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(Units(pattern), pattern.size(), kOptions, &error, &offset, nullptr);
  if (code == nullptr) {
    return Status(Code::kInvalid, fmt::format("{} (at character {})", ErrorText(error), offset));
  }
  Regexp regexp;
  regexp.code_ = {code, Deleter()};
  return regexp;
}

bool Regexp::Matches(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, Deleter> match(pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, Deleter> limits(pcre2_match_context_create(nullptr));
  if (match == nullptr || limits == nullptr) return false;
  pcre2_set_match_limit(limits.get(), kMatchLimit);
  pcre2_set_depth_limit(limits.get(), kMatchLimit);
  pcre2_set_heap_limit(limits.get(), kHeapLimit);
  return pcre2_match(code_.get(), Units(text), text.size(), 0, 0, match.get(), limits.get()) >= 0;
}

}  // namespace sonde
