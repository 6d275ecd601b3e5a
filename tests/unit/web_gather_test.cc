// What keeps an answer within its bounds before it is written: points of several queries, names,
// notes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/web_fake_source.h"
#include "web/gather.h"
#include "web/notes.h"

namespace sonde::web {
namespace {

using testing::HasSubstr;

// Answers each query with as many points as its metric's name says.
class Counted : public DataSource {
 public:
  Result<std::vector<JobDescription>> Jobs(size_t /*limit*/) const override {
    return std::vector<JobDescription>();
  }
  Result<Profile> GetProfile(const JobStep& /*id*/) const override {
    return Status(Code::kNotFound, "none");
  }
  Result<std::vector<Series>> ListSeries(std::string_view /*metric*/,
                                         size_t /*limit*/) const override {
    Series series;
    series.metric.name = "m";
    series.tags = {{"host", "n1"}, {"dc", "n1"}};
    return std::vector<Series>(3, series);
  }
  void Query(const QuerySpec& spec, Callback callback) const override {
    QueryResult result;
    result.points.resize(std::stoull(spec.metric));
    callback(Answer{{std::move(result)}, 1, 1});
  }
};

Response Gather(std::initializer_list<const char*> points, size_t limit) {
  const auto source = std::make_shared<Counted>();
  const FixedClock clock(0);
  std::vector<QuerySpec> specs;
  for (const char* n : points) specs.emplace_back().metric = n;
  Response answer;
  GatherAndReply(
      {source, &clock, nullptr}, specs, [&](Response response) { answer = std::move(response); },
      [](const Answers& answers) {
        Response response;
        for (const Answer& one : answers) {
          response.body += std::to_string(one.results.at(0).points.size()) + " ";
        }
        return response;
      },
      limit);
  return answer;
}

TEST(Gather, QueriesTogetherAreBounded) {
  EXPECT_EQ(Gather({"3", "4", "3"}, 10).body, "3 4 3 ");
  const Response many = Gather({"3", "4", "4", "2"}, 10);
  EXPECT_EQ(many.status, 413);
  EXPECT_THAT(many.body, HasSubstr("11 points"));
  EXPECT_THAT(many.body, HasSubstr("more than 10"));
}

TEST(Gather, NamesAreThoseOfAllSeries) {
  const Result<SeriesNames> names = Counted().Names();
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->metrics, (std::set<std::string>{"m"}));
  EXPECT_EQ(names->keys, (std::set<std::string>{"dc", "host"}));
  EXPECT_EQ(names->values, (std::set<std::string>{"n1"}));
}

std::vector<Note> Notes(size_t count) {
  std::vector<Note> notes(count);
  for (size_t i = 0; i < count; ++i) {
    notes[i].job = "1.0";
    notes[i].start = static_cast<Nanos>(count - i) * kSecond;
  }
  return notes;
}

TEST(Gather, NotesThatAreLeftOutAreCounted) {
  std::vector<Note> all = Notes(kMaxNotes);
  Bound(0, 5, all);
  ASSERT_EQ(all.size(), kMaxNotes);
  EXPECT_EQ(all.front().start, kSecond) << "in order";
  EXPECT_FALSE(IsAboutNotes(all.front()));

  std::vector<Note> many = Notes(kMaxNotes + 7);
  Bound(3, 5, many);
  ASSERT_EQ(many.size(), kMaxNotes);
  EXPECT_TRUE(IsAboutNotes(many.front()));
  EXPECT_EQ(many.front().start, 5);
  EXPECT_EQ(many.front().notes,
            "8 more and those of 3 older steps are left out: ask for a shorter range");
  EXPECT_EQ(many.back().start, static_cast<Nanos>(kMaxNotes - 1) * kSecond);

  std::vector<Note> few = Notes(2);
  Bound(1, 5, few);
  ASSERT_EQ(few.size(), 3u);
  EXPECT_EQ(few.front().notes, "those of 1 older step are left out: ask for a shorter range");
}

}  // namespace
}  // namespace sonde::web
