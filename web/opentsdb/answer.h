// The answer to /api/query as JSON, written piece by piece: a large answer need not be in memory as
// one text.
//
// Thread safety: none; a writer belongs to one response.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "web/opentsdb/request.h"
#include "web/route/gather.h"

namespace sonde::web {

struct AnswerForm {
  bool arrays = false;    // dps is a list of pairs, not an object
  bool nan_null = false;  // NaN and infinity are null and not the texts "NaN" and "Infinity"
};

class AnswerWriter {
 public:
  AnswerWriter(std::shared_ptr<const OpenTsdbQuery> query, Answers answers, std::vector<Note> notes,
               AnswerForm form)
      : query_(std::move(query)),
        answers_(std::move(answers)),
        notes_(std::move(notes)),
        form_(form) {}

  // Writes all results.
  size_t Points() const;
  // Appends the next part, of about kPiece bytes. False if that was the last.
  bool Next(std::string& out);

 private:
  static constexpr size_t kPiece = 64 << 10;

  const QueryResult& result() const { return answers_[answer_].results[result_]; }
  bool Skip();
  void Begin(std::string& out);
  void AppendPoints(std::string& out, size_t limit);
  void AppendNotes(std::string& out) const;

  const std::shared_ptr<const OpenTsdbQuery> query_;
  Answers answers_;
  const std::vector<Note> notes_;
  const AnswerForm form_;
  size_t answer_ = 0;
  size_t result_ = 0;
  size_t point_ = 0;
  bool any_ = false;   // a result was begun
  bool open_ = false;  // and has not ended
};

}  // namespace sonde::web
