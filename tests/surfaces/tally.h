// Counts what was compared, and keeps what differs: the surface, the question, what the models
// expect and what was shown.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/surfaces/algebra.h"

namespace sonde::surfaces {

class Tally {
 public:
  // What is asked from now on.
  void Ask(std::string surface, std::string question);

  // NaN equals NaN. A number that is not shown is NaN.
  void Compare(const std::string& where, const Number& expected, double shown);
  void Compare(const std::string& where, double expected, double shown) {
    Compare(where, Number{expected, 0}, shown);
  }
  void Compare(const std::string& where, const std::string& expected, const std::string& shown);
  void Differ(const std::string& what);
  // Something is not compared.
  void Skip(const std::string& why) { ++skipped_[why]; }

  uint64_t questions() const { return questions_; }
  uint64_t numbers() const { return numbers_; }
  uint64_t differences() const { return differences_; }
  // By the reason how often.
  const std::map<std::string, uint64_t>& skipped() const { return skipped_; }
  // The first ones in words.
  const std::vector<std::string>& told() const { return told_; }
  void Forget() { told_.clear(); }

 private:
  static constexpr size_t kMostTold = 8;

  std::string surface_;
  std::string question_;
  bool question_differs_ = false;
  uint64_t questions_ = 0;
  uint64_t numbers_ = 0;
  uint64_t differences_ = 0;
  std::map<std::string, uint64_t> skipped_;
  std::vector<std::string> told_;
};

}  // namespace sonde::surfaces
