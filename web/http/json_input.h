// Reads requests' bodies: fields of JSON that come from outside, checked, with errors that name the
// field.
//
// Thread safety: functions without state.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"
#include "core/time_zone.h"

namespace sonde::web {

inline constexpr size_t kMaxText = 4096;

inline std::string_view View(boost::json::string_view text) { return {text.data(), text.size()}; }

Status Wrong(std::string_view key, std::string_view expected);
Status ReadText(const boost::json::value& value, std::string_view key, std::string& out,
                size_t limit = kMaxText);
// Some clients send flags and numbers as texts.
Status ReadBool(const boost::json::value& value, std::string_view key, bool& out);
Status ReadNumber(const boost::json::value& value, std::string_view key, double& out);
// In any form that OpenTSDB takes (ParseOpenTsdbTime); also seconds with decimals.
Status ReadTime(const boost::json::value& value, std::string_view key, Nanos now, Nanos& out,
                const TimeZone& zone = {});
Status ReadCount(const boost::json::value& value, std::string_view key, uint64_t& out);

// For bodies in which an unknown field is a mistake: names the known fields.
Status NoSuchField(std::string_view key, std::string_view known);

// Parses a body: its numbers exactly, its depth bounded. kInvalid for a body that is not JSON.
Result<boost::json::value> ParseBody(std::string_view body, boost::json::storage_ptr storage);

// Parses a body and hands it to `read`, which gives a Result<T>; no exception leaves it.
template <typename T, typename Read>
Result<T> WithJson(std::string_view body, Read read) try {
  boost::json::monotonic_resource arena;
  const Result<boost::json::value> value = ParseBody(body, &arena);
  if (!value.ok()) return value.status();
  return read(*value);
} catch (const std::bad_alloc&) {
  return Status(Code::kLimit, "read the body: out of memory");
} catch (const std::exception& e) {
  return Status(Code::kInvalid, std::string("read the body: ") + e.what());
}

// The same for a body that must be an object.
template <typename T, typename Read>
Result<T> WithObject(std::string_view body, Read read) {
  return WithJson<T>(body, [&](const boost::json::value& value) -> Result<T> {
    const boost::json::object* object = value.if_object();
    if (object == nullptr) return Status(Code::kInvalid, "the body must be a JSON object");
    return read(*object);
  });
}

}  // namespace sonde::web
