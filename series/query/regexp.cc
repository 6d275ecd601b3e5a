#include "series/query/regexp.h"

#include <re2/re2.h>

namespace sonde {
namespace {

constexpr int64_t kMaxMemory = 1 << 20;  // of one expression, bytes

re2::StringPiece Piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Result<Regexp> Regexp::Compile(std::string_view pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  Regexp regexp;
  regexp.code_ = std::make_shared<const re2::RE2>(Piece(pattern), options);
  if (!regexp.code_->ok()) return Status(Code::kInvalid, regexp.code_->error());
  return regexp;
}

bool Regexp::Matches(std::string_view text) const {
  return re2::RE2::PartialMatch(Piece(text), *code_);
}

}  // namespace sonde
