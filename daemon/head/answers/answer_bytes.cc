#include "daemon/head/answers/answer_bytes.h"

#include "core/bytes.h"
#include "daemon/node/ask/ask_desk.h"
#include "libclient/ask/layout.h"
#include "series/block/series_bytes.h"

namespace sonde::head {
namespace {

void WriteResult(const QueryResult& result, ByteWriter& w) {
  w.Text(result.metric);
  w.Varint(result.tags.pairs().size());
  for (const auto& [key, value] : result.tags.pairs()) {
    w.Text(key);
    w.Text(value);
  }
  w.Varint(result.aggregate_tags.size());
  for (const std::string& key : result.aggregate_tags) w.Text(key);
  w.Varint(result.points.size());
  uint64_t before = 0;
  for (const Point& point : result.points) {
    const auto time = static_cast<uint64_t>(point.time);
    w.Signed(static_cast<int64_t>(time - before));
    w.Fixed(point.value);
    before = time;
  }
}

}  // namespace

std::string EncodeAnswer(const web::Answer& answer, bool late) {
  std::string body;
  ByteWriter w(body);
  w.Fixed(client::kBodyVersion);
  w.Varint(answer.nodes_answered);
  w.Varint(answer.nodes_expected);
  const uint8_t rows_only = answer.rows_only.empty() ? 0 : client::kRowsOnly;
  w.Fixed<uint8_t>((late ? client::kLate : 0) | rows_only);
  w.Varint(answer.results.size());
  for (const QueryResult& result : answer.results) WriteResult(result, w);
  return body;
}

std::string EncodeListing(const std::vector<Series>& series) {
  std::string body;
  ByteWriter w(body);
  w.Fixed(client::kBodyVersion);
  w.Varint(series.size());
  for (const Series& one : series) WriteSeries(one, w);
  return body;
}

std::string EncodeFailure(const Status& why) {
  std::string body;
  ByteWriter w(body);
  w.Fixed(node::AskCodeOf(why.code()));
  w.Text(why.message().substr(0, client::kMaxWhy));
  return body;
}

}  // namespace sonde::head
