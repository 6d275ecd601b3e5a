// Reads what the product shows: JSON, the text of Prometheus, CSV. Every number is read to its last
// digit, and by none of the product's code.
//
// Thread safety: values, and functions without state.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "tests/surfaces/algebra.h"

namespace sonde::surfaces {

// Throws std::runtime_error for what is no JSON, and for a member that is not there.
class Json {
 public:
  static Json Parse(std::string_view text);

  const Json& operator[](const std::string& name) const;
  const Json& operator[](size_t i) const { return items_.at(i); }
  bool Has(const std::string& name) const { return members_.contains(name); }
  const std::vector<Json>& items() const { return items_; }
  const std::map<std::string, Json>& members() const { return members_; }
  // The text "NaN" and null are NaN.
  double number() const;
  const std::string& text() const { return text_; }

 private:
  class Parser;
  std::string text_;  // of a text, and a number as it was written
  std::vector<Json> items_;
  std::map<std::string, Json> members_;
};

LineTags TagsOf(const Json& object);

// Samples by their name and tags, as name{a="1",b="2"}; of OpenMetrics files one for each time.
// Throws std::runtime_error where there are two.
std::map<std::string, double> ReadExposition(std::string_view text);
std::map<std::string, std::map<Nanos, double>> ReadOpenMetrics(std::string_view text);
// Columns by their names; empty cells are left out.
std::map<std::string, std::map<Nanos, double>> ReadCsv(std::string_view text);
// metric{a="1"} from the tags of a series.
std::string NameWith(const std::string& metric, const LineTags& tags);

}  // namespace sonde::surfaces
