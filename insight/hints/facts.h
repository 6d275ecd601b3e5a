// What is known of a step, as numbers with names: what the conditions of hints are made of.
//
// Every fact is declared once, in facts.cc, with its unit and meaning; docs/analysis.md and
// `sonde hints --facts` are made from that. A fact that is not known is NaN.
//
// Thread safety: values; the list is constant.
#pragma once

#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace sonde::insight {

struct FactInfo {
  std::string_view name;
  std::string_view unit;  // as of metrics; "text": a name, not a number
  std::string_view meaning;
};
std::span<const FactInfo> FactList();
// nullptr: there is no such fact.
const FactInfo* FindFact(std::string_view name);

class Facts {
 public:
  // Both must be in the list.
  void Set(std::string_view name, double value);
  void SetText(std::string_view name, std::string_view text);
  double Number(std::string_view name) const;
  std::string_view Text(std::string_view name) const;  // "": not known

 private:
  std::map<std::string, double, std::less<>> numbers_;
  std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace sonde::insight
