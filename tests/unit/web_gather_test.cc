// What keeps an answer within its bounds before it is written: points of several queries, names,
// notes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/task_wait.h"
#include "tests/unit/web_fake_source.h"
#include "web/route/gather.h"
#include "web/source/notes.h"

namespace sonde::web::web_gather_test {
namespace {

using testing::HasSubstr;

// Answers each query with as many points as its metric's name says.
class Counted : public DataSource {
 public:
  void Jobs(size_t /*limit*/, JobsCallback callback) const override {
    callback(std::vector<JobDescription>());
  }
  void GetProfile(const JobStep& /*id*/, ProfileCallback callback) const override {
    callback(Status(Code::kNotFound, "none"));
  }
  void ListSeries(std::string_view /*metric*/, size_t /*limit*/,
                  SeriesCallback callback) const override {
    Series series;
    series.metric.name = "m";
    series.tags = {{"host", "n1"}, {"dc", "n1"}};
    callback(std::vector<Series>(3, series));
  }
  void Query(const QuerySpec& spec, Callback callback) const override {
    QueryResult result;
    result.points.resize(std::stoull(spec.metric));
    callback(Answer{{std::move(result)}, 1, 1});
  }
};

// How many points each of the answers has.
Result<std::vector<size_t>> PointsOf(std::initializer_list<const char*> points, size_t limit) {
  const Counted source;
  std::vector<QuerySpec> specs;
  for (const char* n : points) specs.emplace_back().metric = n;
  const Context context(source);
  const Result<Answers> answers = WaitFor(Gather(context, std::move(specs), limit));
  if (!answers.ok()) return answers.status();
  std::vector<size_t> counts;
  for (const Answer& one : *answers) counts.push_back(one.results.at(0).points.size());
  return counts;
}

TEST(Gather, QueriesTogetherAreBounded) {
  EXPECT_THAT(*PointsOf({"3", "4", "3"}, 10), testing::ElementsAre(3, 4, 3));
  const Status many = PointsOf({"3", "4", "4", "2"}, 10).status();
  EXPECT_EQ(ErrorResponse(many).status, 413);
  EXPECT_THAT(std::string(many.message()), HasSubstr("11 points"));
  EXPECT_THAT(std::string(many.message()), HasSubstr("more than 10"));
}

TEST(Gather, NamesAreThoseOfAllSeries) {
  const Counted source;
  const Result<SeriesNames> names = WaitFor(source, &StepSeries::Names);
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
}  // namespace sonde::web::web_gather_test
