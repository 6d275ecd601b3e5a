#include "profiles/json/parse.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <new>
#include <string>

namespace sonde {
namespace {

namespace json = boost::json;

// What boost::json::parser's own handler does, but for numbers.
class Handler {
 public:
  static constexpr size_t max_object_size = size_t{1} << 20;
  static constexpr size_t max_array_size = size_t{1} << 22;
  static constexpr size_t max_key_size = 4096;
  static constexpr size_t max_string_size = size_t{1} << 20;

  explicit Handler(json::storage_ptr storage) { stack_.reset(std::move(storage)); }
  json::value Release() { return stack_.release(); }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) { return true; }
  bool on_object_end(size_t n, json::error_code&) { return stack_.push_object(n), true; }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(size_t n, json::error_code&) { return stack_.push_array(n), true; }
  bool on_key_part(json::string_view s, size_t, json::error_code&) {
    return stack_.push_chars(s), true;
  }
  bool on_key(json::string_view s, size_t, json::error_code&) { return stack_.push_key(s), true; }
  bool on_string_part(json::string_view s, size_t, json::error_code&) {
    return stack_.push_chars(s), true;
  }
  bool on_string(json::string_view s, size_t, json::error_code&) {
    return stack_.push_string(s), true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(int64_t i, json::string_view, json::error_code&) {
    return stack_.push_int64(i), true;
  }
  bool on_uint64(uint64_t u, json::string_view, json::error_code&) {
    return stack_.push_uint64(u), true;
  }
  // The whole text is parsed from one buffer, so `digits` is the whole number.
  bool on_double(double rounded, json::string_view digits, json::error_code&) {
    double exact = rounded;
    std::from_chars(digits.data(), digits.data() + digits.size(), exact);
    return stack_.push_double(exact), true;
  }
  bool on_bool(bool b, json::error_code&) { return stack_.push_bool(b), true; }
  bool on_null(json::error_code&) { return stack_.push_null(), true; }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  json::value_stack stack_;
};

}  // namespace

Result<json::value> ParseJson(std::string_view text, std::string_view what,
                              json::storage_ptr storage) try {
  const std::string prefix = "read " + std::string(what) + ": ";
  if (text.size() > kMaxJsonBytes) return Status(Code::kLimit, prefix + "longer than 256 MiB");
  json::basic_parser<Handler> parser(json::parse_options{}, std::move(storage));
  json::error_code error;
  const size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used != text.size()) error = json::error::extra_data;
  if (error) return Status(Code::kCorrupt, prefix + "no JSON: " + error.message());
  return parser.handler().Release();
} catch (const std::bad_alloc&) {
  return Status(Code::kLimit, "read " + std::string(what) + ": out of memory");
} catch (const std::exception& e) {
  return Status(Code::kCorrupt, "read " + std::string(what) + ": " + e.what());
}

}  // namespace sonde
