// A text with numbers to fill in: "{cpus_busy} of {cpus} CPUs", "--mem={enough|mem}".
//
// Thread safety: values.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sonde::insight {

class Message {
 public:
  struct Part {
    std::string text;  // as it is, or the name of what is filled in
    bool name = false;
    std::string form;  // "", "whole", "percent", "mem", "time"
  };

  // kInvalid: a brace without its other one, an unknown form. "{{" and "}}" stand for braces.
  static Result<Message> Parse(std::string_view text);

  const std::vector<Part>& parts() const { return parts_; }
  bool empty() const { return parts_.empty(); }
  // `fill` gives the text of a name in that form; "" if it is not known: then all is "".
  std::string Fill(const std::function<std::string(const Part&)>& fill) const;

 private:
  std::vector<Part> parts_;
};

// A number in a form; "" if it is NaN. Without a form by its unit.
std::string InForm(double value, std::string_view unit, std::string_view form);

}  // namespace sonde::insight
