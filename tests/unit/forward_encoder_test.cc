// What goes to a receiver, read by independent decoders: protoc for Protocol Buffers, libsnappy's
// own check for Snappy, and bytes that stand here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snappy-c.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "forward/formats/encoder.h"
#include "profiles_fixture.h"

namespace sonde::forward {
namespace {

using testing::HasSubstr;

Line TestLine(const Encoder& encoder) {
  Line line;
  line.name = "app_heat";
  line.metric.name = "app.heat";
  line.metric.unit = "watts";
  line.metric.help = "How hot";
  line.labels = {{"host", "n 1,=x"}, {"_a", "0"}, {"job", "1.0"}, {"empty", ""}};
  encoder.Prepare(line);
  return line;
}

std::string Body(const Encoder& encoder, const Line& line, const std::vector<Sample>& samples,
                 bool described = false) {
  std::string body;
  const Run run{&line, samples};
  const Line* const lines[] = {&line};
  encoder.Encode({&run, 1}, {lines, described ? 1u : 0u}, body);
  return body;
}

std::string Unpacked(const std::string& packed) {
  size_t size = 0;
  EXPECT_EQ(snappy_validate_compressed_buffer(packed.data(), packed.size()), SNAPPY_OK);
  EXPECT_EQ(snappy_uncompressed_length(packed.data(), packed.size(), &size), SNAPPY_OK);
  std::string out(size, '\0');
  EXPECT_EQ(snappy_uncompress(packed.data(), packed.size(), out.data(), &size), SNAPPY_OK);
  return out;
}

constexpr char kProto[] = R"(syntax = "proto3";
message WriteRequest { repeated TimeSeries timeseries = 1; repeated Metadata metadata = 3; }
message TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; }
message Label { string name = 1; string value = 2; }
message Sample { double value = 1; int64 timestamp = 2; }
message Metadata { enum Type { UNKNOWN = 0; COUNTER = 1; GAUGE = 2; }
  Type type = 1; string metric_family_name = 2; string help = 4; string unit = 5; }
)";

TEST(RemoteWriteTest, IsWhatProtocReads) {
  if (std::system("protoc --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no protoc";
  const auto encoder = MakeRemoteWrite();
  const Line line = TestLine(*encoder);
  const std::string raw = Unpacked(Body(
      *encoder, line, {{1'790'000'000'123'000'001, 0.5}, {1'790'000'001 * kSecond, -2}}, true));
  const TempDir dir;
  std::ofstream(dir.path() + "/write.proto") << kProto;
  std::ofstream(dir.path() + "/raw", std::ios::binary) << raw;
  const std::string command =
      "cd '" + dir.path() + "' && protoc --decode=WriteRequest write.proto < raw > text";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::stringstream text;
  text << std::ifstream(dir.path() + "/text").rdbuf();
  EXPECT_EQ(text.str(), R"(timeseries {
  labels {
    name: "__name__"
    value: "app_heat"
  }
  labels {
    name: "_a"
    value: "0"
  }
  labels {
    name: "host"
    value: "n 1,=x"
  }
  labels {
    name: "job"
    value: "1.0"
  }
  samples {
    value: 0.5
    timestamp: 1790000000124
  }
  samples {
    value: -2
    timestamp: 1790000001000
  }
}
metadata {
  type: GAUGE
  metric_family_name: "app_heat"
  help: "How hot"
  unit: "watts"
}
)");
}

TEST(RemoteWriteTest, HasTheseBytes) {
  const auto encoder = MakeRemoteWrite();
  Line line;
  line.name = "x";
  encoder->Prepare(line);
  EXPECT_EQ(Unpacked(Body(*encoder, line, {{300 * kMillisecond, 1.0}})),
            std::string("\x0a\x1d"
                        "\x0a\x0d\x0a\x08__name__\x12\x01x"
                        "\x12\x0c\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\xac\x02",
                        31));
}

TEST(RemoteWriteTest, EndsSeriesWithTheBitsOfAStaleMarker) {
  const auto encoder = MakeRemoteWrite();
  EXPECT_EQ(std::bit_cast<uint64_t>(*encoder->StaleMarker()), 0x7ff0000000000002u);
  Line line;
  line.name = "x";
  encoder->Prepare(line);
  EXPECT_THAT(Unpacked(Body(*encoder, line, {{0, *encoder->StaleMarker()}})),
              HasSubstr(std::string("\x09\x02\x00\x00\x00\x00\x00\xf0\x7f", 9)));
}

TEST(RemoteWriteTest, KnowsWhatPrometheusRefusesForItsTime) {
  const auto encoder = MakeRemoteWrite();
  const Verdict there = encoder->Judge({400, 0, "out of order sample"});
  EXPECT_TRUE(there.order && there.there);
  const Verdict old = encoder->Judge({400, 0, "out of bounds"});
  EXPECT_TRUE(old.order && !old.there);
  const Verdict wrong = encoder->Judge({400, 0, "invalid label"});
  EXPECT_TRUE(!wrong.order && !wrong.there);
}

TEST(VerdictTest, FollowsTheStatus) {
  using Kind = Verdict::Kind;
  for (const auto& [status, kind] : {std::pair{200, Kind::kDone},
                                     {204, Kind::kDone},
                                     {429, Kind::kRetry},
                                     {500, Kind::kRetry},
                                     {503, Kind::kRetry},
                                     {400, Kind::kRefused},
                                     {413, Kind::kRefused},
                                     {422, Kind::kRefused},
                                     {301, Kind::kStop},
                                     {401, Kind::kStop},
                                     {404, Kind::kStop}}) {
    EXPECT_EQ(JudgeStatus({status, 0, ""}).kind, kind) << status;
  }
  // What the receiver says may come from anybody: no line ends, no controls.
  EXPECT_EQ(JudgeStatus({500, 0, "a\nb\x1b[31m\n"}).why, "HTTP status 500: a b [31m");
  EXPECT_EQ(JudgeStatus({500, 0, "\xff\xfe"}).why, "HTTP status 500");
}

TEST(InfluxTest, EscapesWhatItMust) {
  const auto encoder = MakeInflux();
  Line line = TestLine(*encoder);
  EXPECT_EQ(Body(*encoder, line, {{1'790'000'000'123'000'001, 0.1}, {5, -1e300}}),
            "app_heat,_a=0,host=n\\ 1\\,\\=x,job=1.0 value=0.1 1790000000123000001\n"
            "app_heat,_a=0,host=n\\ 1\\,\\=x,job=1.0 value=-1e+300 5\n");
  // A backslash before what has a meaning would take it away, also in pairs; an end of a line would
  // begin a point of somebody else's.
  for (const auto& [text, written] : {std::pair("C:\\", "C:_"),
                                      {"a\\b", "a\\b"},
                                      {"a\\,b=c", "a_\\,b\\=c"},
                                      {"a\\\\,b", "a__\\,b"},
                                      {"a\nb value=1 5", "a?b\\ value\\=1\\ 5"},
                                      {"\r\t\x1b[m\x7f", "???[m?"},
                                      {"\xc2\x9bm\xe2\x80\xa8\xff", "?m??"},
                                      {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"}}) {
    line.labels = {{"path", text}};
    encoder->Prepare(line);
    EXPECT_EQ(Body(*encoder, line, {{5, 1}}),
              std::string("app_heat,path=") + written + " value=1 5\n");
  }
  EXPECT_FALSE(encoder->Takes(std::nan("")));
  EXPECT_FALSE(encoder->Takes(HUGE_VAL));
}

TEST(InfluxTest, CountsWhatIsDroppedOfARequest) {
  const auto encoder = MakeInflux();
  const Verdict partial = encoder->Judge(
      {400, 0, R"({"error":"partial write: points beyond retention policy dropped=17"})"});
  EXPECT_EQ(partial.kind, Verdict::Kind::kDone);
  EXPECT_EQ(partial.refused, 17u);
  EXPECT_EQ(encoder->Judge({400, 0, "unable to parse 'x': missing fields"}).kind,
            Verdict::Kind::kRefused);
  EXPECT_EQ(encoder->Judge({404, 0, "database not found"}).kind, Verdict::Kind::kStop);
}

TEST(OpenTsdbTest, WritesPointsWithWhatItTakes) {
  const auto encoder = MakeOpenTsdb();
  Line line = TestLine(*encoder);
  const std::string point =
      R"({"metric":"app_heat","tags":{"_a":"0","host":"n_1__x","job":"1.0"},"timestamp":)";
  EXPECT_EQ(Body(*encoder, line, {{kSecond, 0.1}, {2 * kSecond, 3}}),
            "[" + point + R"(1000,"value":0.1},)" + point + R"(2000,"value":3}])");
  EXPECT_FALSE(encoder->Takes(std::nan("")));
}

TEST(OpenTsdbTest, LeavesOutWhatSaysLeastOfTooManyTags) {
  const auto encoder = MakeOpenTsdb();
  Line line;
  line.name = "x";
  for (const char* key : {"a", "b", "c", "d", "e", "f", "cluster", "host", "job", "user"}) {
    line.labels.Set(key, "1");
  }
  encoder->Prepare(line);
  EXPECT_EQ(line.head, R"({"metric":"x","tags":{"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1",)"
                       R"("host":"1","job":"1"},"timestamp":)");
}

TEST(OpenTsdbTest, CountsWhatFailed) {
  const auto encoder = MakeOpenTsdb();
  const Verdict verdict = encoder->Judge(
      {400, 0, R"({"errors":[{"datapoint":{},"error":"no value"}],"failed": 2,"success":3})"});
  EXPECT_EQ(verdict.kind, Verdict::Kind::kDone);
  EXPECT_EQ(verdict.refused, 2u);
  EXPECT_EQ(verdict.why, "no value");
}

}  // namespace
}  // namespace sonde::forward
