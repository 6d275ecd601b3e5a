// What libsonde_functions counts is what a program did that was compiled with
// -finstrument-functions, by the names of its functions, and the program is not disturbed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "daemon/collect/app/app.h"
#include "tests/unit/client_driver.h"
#include "tests/unit/paths.h"
#include "tests/unit/temp_dir.h"

namespace sonde::collect {
namespace {

using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;
using testing::StartsWith;

constexpr char kCalls[] = "function_calls_total";
constexpr char kSeconds[] = "function_seconds_total";

class Functions : public testing::Test {
 protected:
  Functions() {
    options_.socket = "sonde-functions-" + std::to_string(getpid());
    options_.uid = geteuid();
    auto source = AppSource::Open(options_);
    if (source.ok()) source_ = std::move(source).value();
  }

  void SetUp() override { ASSERT_NE(source_, nullptr); }

  static std::string Ours() { return std::string(kLibsonde) + ":" + kLibsondeFunctions; }
  ClientProcess::Environment Environment(const std::string& preload = Ours()) const {
    return {{"SONDE_SOCKET", options_.socket}, {"SONDE_LEVEL", "1"}, {"LD_PRELOAD", preload}};
  }
  ClientProcess::Environment Timed() const {
    ClientProcess::Environment environment = Environment();
    environment["SONDE_FUNCTION_SECONDS"] = "1";
    return environment;
  }

  // A program that ends by itself; its wait status.
  static int Run(const char* program, const ClientProcess::Environment& environment) {
    ClientProcess app(environment, STDERR_FILENO, 0, program);
    return app.End();
  }

  void Sample() {
    now_ += kSecond;
    source_->Sample(now_);
  }
  // Of one function; -1 if there is no such series. `object`: "" for the program.
  double Value(const std::string& metric, const std::string& function,
               const std::string& object = "") const {
    Tags tags;
    for (size_t i = 0; i < source_->series().size(); ++i) {
      const Series& series = source_->series()[i];
      const std::string* const of = series.tags.Find("function");
      const std::string* const in = series.tags.Find("object");
      if (series.metric.name == metric && of != nullptr && *of == function &&
          (in == nullptr ? "" : *in) == object) {
        return source_->values()[i];
      }
    }
    return -1;
  }
  double Calls(const std::string& function, const std::string& object = "") const {
    return Value(kCalls, function, object);
  }
  std::vector<std::string> Names(const std::string& metric) const {
    std::vector<std::string> names;
    for (const Series& series : source_->series()) {
      if (series.metric.name == metric) names.push_back(*series.tags.Find("function"));
    }
    return names;
  }

  AppSource::Options options_;
  std::unique_ptr<AppSource> source_;
  Nanos now_ = 1'000 * kSecond;
};

TEST_F(Functions, StaticOnesTooByTheirNames) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("work 1000"), "ok");
  Sample();
  EXPECT_EQ(Calls("work"), 1);
  EXPECT_EQ(Calls("helper"), 1000);
  EXPECT_TRUE(Names(kSeconds).empty()) << "nobody asked for the time";
}

TEST_F(Functions, BeforeMainAndBeforeLibsondeIsReady) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("work 1"), "ok");
  Sample();
  EXPECT_EQ(Calls("before_main"), 2);
  EXPECT_EQ(Calls("when_loaded", "libinstrumented_needed.so"), 3);
}

TEST_F(Functions, ThoseOfLibrariesAreToldApartByTheirFiles) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("work 2"), "ok");
  EXPECT_EQ(app.Do("needed"), "ok");
  EXPECT_EQ(app.Do("load"), "ok");
  Sample();
  EXPECT_EQ(Calls("helper"), 2);
  EXPECT_EQ(Calls("helper", "libinstrumented_needed.so"), 5);
  EXPECT_EQ(Calls("helper", "libinstrumented_loaded.so"), 7);
  EXPECT_EQ(Calls("when_loaded", "libinstrumented_loaded.so"), 3) << "in its constructor";
}

TEST_F(Functions, CxxNamesAsPeopleWriteThem) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("cxx"), "ok");
  Sample();
  EXPECT_EQ(Calls("shapes::Square::Turn(int)"), 3);
  EXPECT_EQ(Calls("shapes::Square::Turn(double)"), 2);
  EXPECT_EQ(Calls("void shapes::Square::Scale<long>(long)"), 1);
  EXPECT_EQ(Calls("shapes::(anonymous namespace)::Hidden()"), 1);
  EXPECT_EQ(Calls("shapes::Throw()"), 4);
}

TEST_F(Functions, FirstCalledInASignalHandlerTheyHaveTheSameNames) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("cxx_in_handler"), "ok");
  Sample();
  EXPECT_EQ(Calls("shapes::InHandler()"), 1);
}

// The handler may have interrupted malloc().
TEST_F(Functions, AFirstCallAsksForNoMemory) {
  EXPECT_EQ(Run(kFunctionsFrugal, Environment()), 0);
  Sample();
  EXPECT_EQ(Calls("frugal::InHandler()"), 1);
  EXPECT_EQ(Calls("frugal::Ordinary()"), 1);
}

TEST_F(Functions, LongCxxNamesAreTranslatedInFull) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("cxx_long_name"), "ok");
  Sample();
  const std::vector<std::string> names = Names(kCalls);
  const auto cut = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("void shapes::TakeTwo<std::pair<");
  });
  ASSERT_NE(cut, names.end()) << testing::PrintToString(names);
  EXPECT_EQ(cut->size(), 128u);
  EXPECT_EQ((*cut)[119], '~');
  EXPECT_EQ(Calls(*cut), 2);
}

// One calls the other.
TEST_F(Functions, AConstructorAndThatOfTheBaseAreToldApart) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("cxx_constructors"), "ok");
  Sample();
  EXPECT_EQ(Calls("shapes::Shape::Shape()"), 5) << "they are the same function";
  EXPECT_EQ(Calls("shapes::Circle::Circle() [complete]"), 2);
  EXPECT_EQ(Calls("shapes::Circle::Circle()"), 3);
  EXPECT_EQ(Calls("shapes::Circle::~Circle() [complete]"), 2);
  EXPECT_EQ(Calls("shapes::Circle::~Circle()"), 3);
  EXPECT_EQ(Calls("shapes::Circle::~Circle() [deleting]"), 2);
}

TEST_F(Functions, AProgramThatIsBuiltAnewWhileItRunsKeepsItsNames) {
  const TempDir dir;
  const std::string program = dir.path() + "/program";
  std::filesystem::copy_file(kClientProcess, program);
  ClientProcess app(Environment(), STDERR_FILENO, 0, program.c_str());
  EXPECT_EQ(app.Do("work 3"), "ok");
  std::filesystem::remove(program);
  EXPECT_EQ(app.Do("cxx"), "ok");
  std::filesystem::copy_file(kFunctionsAllocator, program);
  EXPECT_EQ(app.Do("many"), "ok");
  Sample();
  EXPECT_EQ(Calls("helper"), 3);
  EXPECT_EQ(Calls("shapes::Throw()"), 4);
  EXPECT_EQ(Calls("many_100"), 1);
  EXPECT_THAT(Names(kCalls), testing::Each(testing::Not(HasSubstr("+0x"))));
}

// Of processor time; a thousand names are looked up.
TEST_F(Functions, ALargeProgramsFirstCallsTakeAboutAsLongAsASmallOnes) {
  ClientProcess small(Environment());
  ClientProcess large(Environment(), STDERR_FILENO, 0, kFunctionsLarge);
  const double in_small = std::stod(small.Do("time_many"));
  EXPECT_LT(std::stod(large.Do("time_many")), 5 * in_small + 0.3);
  Sample();
  EXPECT_EQ(Calls("many_100"), 2);
}

TEST_F(Functions, LongNamesAreCutAndStayDistinct) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("long_name"), "ok");
  Sample();
  const std::vector<std::string> names = Names(kCalls);
  const auto cut = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("a_function_whose_name_is_longer");
  });
  ASSERT_NE(cut, names.end());
  EXPECT_EQ(cut->size(), 128u);
  EXPECT_EQ((*cut)[119], '~');
}

TEST_F(Functions, OfThreadsInFull) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("work 50000 8"), "ok");
  Sample();
  EXPECT_EQ(Calls("work"), 8);
  EXPECT_EQ(Calls("helper"), 400000);
}

TEST_F(Functions, AChildIsCountedFromItsFirstCall) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("work 3"), "ok");
  EXPECT_EQ(app.Do("fork"), "ok");
  EXPECT_EQ(app.Do("work 4"), "ok");
  Sample();
  EXPECT_EQ(Calls("in_child"), 9);
  EXPECT_EQ(Calls("helper"), 7);
  EXPECT_EQ(source_->counts().attached, 2u) << "the child that called nothing attached";
}

TEST_F(Functions, ASignalHandlerMayCallThemAtAnyTime) {
  ClientProcess app(Environment());
  const std::string handled = app.Do("handler");
  ASSERT_NE(handled, "dead");
  EXPECT_EQ(app.End(), 0);
  Sample();
  EXPECT_EQ(Calls("in_handler"), std::stod(handled));
}

// No later call of a new function tells them.
TEST_F(Functions, WhatIsCalledWhileAnotherOneIsRegisteredIsToldAtOnce) {
  ClientProcess app(Environment(std::string(kFunctionsWithin) + ":" + Ours()));
  EXPECT_EQ(app.Do("long_name"), "ok");
  Sample();
  double sum = 0;
  for (const std::string& name : Names(kCalls)) {
    if (name.starts_with("within_")) sum += Calls(name, "libfunctions_within.so");
  }
  EXPECT_EQ(sum, 100);
}

TEST_F(Functions, MoreThanThereIsRoomForAreCountedTogetherAndARemarkSaysSo) {
  ClientProcess app(Environment());
  EXPECT_EQ(app.Do("many"), "ok");
  EXPECT_EQ(app.Do("many"), "ok");
  Sample();
  EXPECT_EQ(Names(kCalls).size(), 1001u);
  double sum = 0;
  for (const std::string& name : Names(kCalls)) {
    if (name.starts_with("many_") || name == "(other)") sum += Calls(name);
  }
  EXPECT_EQ(sum, 2200);
  EXPECT_GT(Calls("(other)"), 200) << "each of 100 functions twice, and what came before main";
  const std::vector<Annotation> said = source_->TakeMoments().annotations;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0].text, StartsWith("more than 1,000 functions were called"));
}

TEST_F(Functions, TimesAreInclusiveAndRecursionIsTimedOnce) {
  ClientProcess app(Timed());
  const double all = std::stod(app.Do("recursion 10"));
  Sample();
  EXPECT_EQ(Calls("descend"), 10);
  // 11 times 2 ms, or longer on a busy machine; the clock is exact to a part in a hundred by then.
  const double outer = Value(kSeconds, "outer");
  EXPECT_THAT(outer, AllOf(Gt(0.0215), Lt(1.02 * all + 1e-4)));
  EXPECT_THAT(Value(kSeconds, "descend"), AllOf(Gt(0.0195), Lt(outer - 0.0019)));
}

TEST_F(Functions, WhatWasLeftByLongjmpIsNotTimed) {
  ClientProcess app(Timed());
  const double last = std::stod(app.Do("jumps 100"));
  Sample();
  EXPECT_EQ(Calls("leave"), 101);
  EXPECT_THAT(Value(kSeconds, "leave"), AllOf(Gt(0.0045), Lt(1.02 * last + 1e-3)));
}

TEST_F(Functions, AChildDoesNotTakeItsParentsTime) {
  ClientProcess app(Timed());
  const double all = std::stod(app.Do("timed_fork"));
  Sample();
  EXPECT_EQ(Calls("in_child"), 1);
  EXPECT_THAT(Value(kSeconds, "spend_and_fork"), AllOf(Gt(0.0045), Lt(all + 1e-3)));
}

// The C library allocates memory for a thread's 33rd key, here by the program's own calloc, whose
// functions are counted and timed.
TEST_F(Functions, WhereOtherKeysAreTakenThereAreNoTimesAndARemarkSaysSo) {
  EXPECT_EQ(Run(kFunctionsAllocator, Timed()), 0);
  Sample();
  EXPECT_FALSE(Names(kSeconds).empty()) << "there is room for a key";
  source_->TakeMoments();
  ClientProcess::Environment environment = Timed();
  environment["LD_PRELOAD"] += std::string(":") + kFunctionsKeys;
  const size_t timed_before = Names(kSeconds).size();
  ClientProcess app(environment);
  EXPECT_EQ(app.Do("work 10 4"), "ok");
  EXPECT_EQ(Run(kFunctionsAllocator, environment), 0);
  Sample();
  EXPECT_EQ(Calls("helper"), 40);
  EXPECT_EQ(Names(kSeconds).size(), timed_before);
  const std::vector<Annotation> said = source_->TakeMoments().annotations;
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0].text, StartsWith("functions are counted and not timed"));
}

TEST_F(Functions, AnotherToolsHooksAreCalledAsEver) {
  for (const bool on : {true, false}) {
    ClientProcess::Environment environment = Environment(Ours() + ":" + kFunctionsTool);
    if (!on) environment["SONDE_SOCKET"] = "";
    ClientProcess app(environment);
    const std::string before = app.Do("tool");
    EXPECT_EQ(app.Do("work 10"), "ok");
    const std::string after = app.Do("tool");
    int enters = 0, exits = 0, first = 0;
    ASSERT_EQ(std::sscanf(before.c_str(), "%d", &first), 1) << before;
    ASSERT_EQ(std::sscanf(after.c_str(), "%d %d", &enters, &exits), 2) << after;
    EXPECT_EQ(enters - first, 11);
    EXPECT_EQ(exits, enters);
    if (!on) continue;
    Sample();
    EXPECT_EQ(Calls("helper"), 10);
  }
}

TEST_F(Functions, WithoutTelemetryOrADaemonNothingIsCounted) {
  for (const char* const socket : {"", "sonde-nobody-listens-here"}) {
    ClientProcess::Environment environment = Environment();
    environment["SONDE_SOCKET"] = socket;
    ClientProcess app(environment);
    for (const char* command : {"work 1000", "needed", "load", "cxx", "fork", "many"}) {
      EXPECT_EQ(app.Do(command), "ok") << command;
    }
    EXPECT_EQ(app.End(), 0);
    Sample();
    EXPECT_TRUE(Names(kCalls).empty());
  }
}

TEST_F(Functions, WhereTheProgramAllocatesMemoryItselfNothingIsAllocated) {
  EXPECT_EQ(Run(kFunctionsAllocator, Environment()), 0);
  Sample();
  EXPECT_EQ(Calls("Compute(int)"), 6);
  EXPECT_GE(Calls("malloc"), 6);
  EXPECT_EQ(Calls("malloc"), Calls("TakeFromPool(unsigned long)"));
}

TEST_F(Functions, LinkedWithTheLibraryAProgramNeedsNoPreload) {
  EXPECT_EQ(Run(kFunctionsLinked, Environment("")), 0);
  Sample();
  EXPECT_EQ(Calls("before_main"), 2);
}

}  // namespace
}  // namespace sonde::collect
