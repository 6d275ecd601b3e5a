// Reads an object of untrusted JSON, field by field. A field that is there must have the right type
// and range, else it is named as wrong; an absent field leaves the caller's value as it was. Fields
// that nobody asked for are of a later version of Sonde, and Keep takes them.
//
// Thread safety: values; one thread at a time.
#pragma once

#include <boost/json/value.hpp>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/text/kept_members.h"

namespace sonde {

inline constexpr size_t kMaxJsonString = 65536;

// The fields of one object. Of all objects that share `error`, the first wrong field is remembered.
class JsonFields {
 public:
  JsonFields(const boost::json::value& value, std::string& error, std::string_view where)
      : error_(error) {
    object_ = value.if_object();
    if (object_ == nullptr) Wrong(where, "an object");
  }

  const boost::json::value* Find(std::string_view key) {
    if (object_ == nullptr) return nullptr;
    const auto at = object_->find(key);
    if (at == object_->end()) return nullptr;
    Mark(static_cast<size_t>(at - object_->begin()));
    return &at->value();
  }
  // Fields that are written for others and not read.
  void Skip(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) Find(key);
  }
  // Adds the members that were not asked for: call it last. `within`: the name of this object, if
  // `kept` belongs to an object around it.
  void Keep(KeptMembers& kept, std::string_view within = {}) const;
  // Adds the value of a member that was asked for and is not known.
  void KeepWord(KeptMembers& kept, std::string_view name) const;
  void Read(std::string_view key, std::string& out, size_t limit = kMaxJsonString) {
    const boost::json::value* value = Find(key);
    if (value == nullptr) return;
    const boost::json::string* text = value->if_string();
    if (text == nullptr || text->size() > limit) return Wrong(key, "a text that is not too long");
    out.assign(text->data(), text->size());
  }
  template <typename T>
  requires std::is_integral_v<T>
  void Read(std::string_view key, T& out, T low = std::numeric_limits<T>::min(),
            T high = std::numeric_limits<T>::max()) {
    const boost::json::value* value = Find(key);
    if (value == nullptr) return;
    boost::json::error_code error;
    const T number = value->to_number<T>(error);
    if (error || value->is_double() || number < low || number > high) {
      return Wrong(key, "a whole number in its range");
    }
    out = number;
  }
  void Read(std::string_view key, bool& out) {
    const boost::json::value* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_bool()) return Wrong(key, "true or false");
    out = value->get_bool();
  }
  // null is NaN: an unknown value.
  void Read(std::string_view key, double& out) {
    const boost::json::value* value = Find(key);
    if (value == nullptr) return;
    if (value->is_null()) {
      out = std::nan("");
    } else if (value->is_number()) {
      out = value->to_number<double>();
    } else {
      Wrong(key, "a number or null");
    }
  }
  // nullptr if the field is absent or wrong.
  const boost::json::array* Array(std::string_view key, size_t limit) {
    const boost::json::value* value = Find(key);
    if (value == nullptr) return nullptr;
    const boost::json::array* array = value->if_array();
    if (array != nullptr && array->size() <= limit) return array;
    Wrong(key, "a list that is not too long");
    return nullptr;
  }
  void Wrong(std::string_view key, std::string_view expected) {
    if (!error_.empty()) return;
    error_.append(key).append(": expected ").append(expected);
  }

 private:
  static constexpr size_t kMarked = 64;

  void Mark(size_t index) {
    const uint64_t bit = index < kMarked ? uint64_t{1} << index : 0;
    const bool is_new = bit == 0 ? far_.insert(index).second : (marks_ & bit) == 0;
    marks_ |= bit;
    known_ += is_new ? 1 : 0;
  }

  const boost::json::object* object_;
  std::string& error_;
  size_t known_ = 0;      // members that were asked for
  uint64_t marks_ = 0;    // which of the first ones
  std::set<size_t> far_;  // and which behind these
};

}  // namespace sonde
