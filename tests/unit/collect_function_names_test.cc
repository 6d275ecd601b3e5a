// The names of C++ functions, made of symbols that a process of the application may have made up.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/text/names.h"
#include "core/text/symbol_tags.h"
#include "daemon/collect/app/demangle.h"
#include "daemon/collect/app/function_names.h"

namespace sonde::collect::collect_function_names_test {
namespace {

struct Named {
  std::vector<std::string> values;
  bool good;
};

Named NamesOf(const std::vector<std::string>& symbols) {
  Named named;
  named.values.resize(symbols.size());
  std::vector<CxxName> names;
  for (size_t i = 0; i < symbols.size(); ++i) {
    names.push_back({.symbol = symbols[i], .value = &named.values[i]});
  }
  named.good = Demangle(names, 60 * kSecond);  // a busy machine
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  EXPECT_EQ(errno, ECHILD);
  return named;
}

std::string NameOf(const std::string& symbol) { return NamesOf({symbol}).values[0]; }

TEST(Demangle, MakesTheNamesThatPeopleWrite) {
  const Named named =
      NamesOf({"_ZN6shapes6Square4TurnEi", "_Z1fRKSt6vectorIiSaIiEE", "_ZN1AcvbEv"});
  EXPECT_TRUE(named.good);
  const std::vector<std::string> expected = {"shapes::Square::Turn(int)",
                                             "f(std::vector<int, std::allocator<int> > const&)",
                                             "A::operator bool()"};
  EXPECT_EQ(named.values, expected);
}

TEST(Demangle, WhatIsNoCxxNameStaysAsItIs) {
  EXPECT_EQ(NameOf("_Zounds"), "_Zounds");
  EXPECT_EQ(NameOf("_Z"), "_Z");
  const std::string damaged = "_ZN6shapes" + std::string(300, '9');
  const std::string value = NameOf(damaged);
  EXPECT_EQ(value.size(), kMaxNameLength);
  EXPECT_TRUE(value.starts_with("_ZN6shapes99"));
}

TEST(Demangle, ConstructorsAndDestructorsThatShareANameAreMarked) {
  EXPECT_EQ(NameOf("_ZN1AC1Ev"), "A::A() [complete]");
  EXPECT_EQ(NameOf("_ZN1AC2Ev"), "A::A()");
  EXPECT_EQ(NameOf("_ZN1AD0Ev"), "A::~A() [deleting]");
  EXPECT_EQ(NameOf("_ZN1AD1Ev"), "A::~A() [complete]");
  EXPECT_EQ(NameOf("_ZN1AD2Ev"), "A::~A()");
  EXPECT_EQ(NameOf("_ZN1ACI11BEi"), "A::B(int) [complete]");
  EXPECT_EQ(NameOf("_ZN3xC13fD1Ev"), "xC1::fD1()") << "a part of a name";
}

// Few characters that stand for a name of some gigabytes.
std::string Bomb() {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string symbol = "_Z1f1a1bIS_S_E";
  for (size_t i = 1; i < 30; ++i) {
    const std::string before = std::string("S") + kDigits[i] + "_";
    symbol += "S0_I" + before + before + "E";
  }
  return symbol;
}

TEST(Demangle, ASymbolThatTakesTooLongHarmsNobody) {
  ASSERT_LT(Bomb().size(), kMaxSymbol);
  const Named named = NamesOf({"_Z1av", Bomb(), "_Z1bv", Bomb() + "i", "_Z1cv"});
  EXPECT_FALSE(named.good);
  EXPECT_EQ(named.values[0], "a()");
  EXPECT_TRUE(named.values[1].starts_with("_Z1f1a1b"));
  EXPECT_EQ(named.values[2], "b()");
  EXPECT_EQ(named.values[4], "c()");
}

// A child of this process; 0 if there is none now.
pid_t Child() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string name = entry.path().filename(), word;
    if (name.front() < '0' || name.front() > '9') continue;
    std::ifstream stat(entry.path() / "stat");
    pid_t parent = 0;
    if (stat >> word >> word >> word >> parent && parent == getpid()) return std::stoi(name);
  }
  return 0;
}

// Whether a child has been seen without the descriptor before `over`.
bool SeenWithout(int descriptor, const std::atomic<bool>& over) {
  while (!over) {
    const pid_t child = Child();
    if (child == 0) continue;
    const std::filesystem::path open = "/proc/" + std::to_string(child) + "/fd";
    const auto has = [&](int fd) {
      std::error_code gone;
      const auto type = std::filesystem::symlink_status(open / std::to_string(fd), gone).type();
      return type == std::filesystem::file_type::symlink;
    };
    if (has(STDERR_FILENO) && !has(descriptor) && has(STDERR_FILENO)) return true;
  }
  return false;
}

// Libraries open descriptors that nobody marks. The child ends before the daemon would miss them,
// but what a peer sees of a closed connection is then for the child to decide.
TEST(Demangle, TheChildHasNoneOfTheDaemonsDescriptors) {
  const int stray = dup2(STDIN_FILENO, 300);
  std::atomic<bool> over = false;
  std::future<bool> seen = std::async(std::launch::async, [&] { return SeenWithout(stray, over); });
  const std::vector<std::string> long_work(4, Bomb());
  EXPECT_FALSE(NamesOf(long_work).good);
  over = true;
  EXPECT_TRUE(seen.get());
  close(stray);
}

TEST(Demangle, DeepOnesAreTranslatedOrLeft) {
  const std::string pointers = "_Z1f" + std::string(kMaxSymbol - 5, 'P') + "i";
  EXPECT_TRUE(NameOf(pointers).starts_with("f(int**"));
  std::string nested = "_Z1f";
  for (size_t i = 0; i < 200; ++i) nested += "1aI";
  EXPECT_EQ(NameOf(nested).substr(0, 10), nested.substr(0, 10));
}

TEST(Demangle, OfRandomSymbolsEachBecomesAValueOfATag) {
  std::mt19937 random(1);
  const std::string parts[] = {"_Z", "N",  "E",  "1a", "St", "S_", "S0_", "T_", "I",  "J", "Dp",
                               "L",  "cv", "DT", "pl", "fp", "C2", "D0",  "K",  "PF", "v", "X"};
  std::vector<std::string> symbols(2000);
  for (std::string& symbol : symbols) {
    symbol = "_Z";
    for (size_t i = 0, n = random() % 60; i < n; ++i) symbol += parts[random() % std::size(parts)];
  }
  for (size_t i = 0; i < symbols.size(); i += 100) symbols[i] = "_Z1fv";
  const std::vector<std::string> values = NamesOf(symbols).values;
  for (const std::string& value : values) EXPECT_TRUE(names::IsTagValue(value));
  // All were tried.
  for (size_t i = 0; i < symbols.size(); i += 100) EXPECT_EQ(values[i], "f()");
}

AppMetric Registered(std::string_view symbol, const char* metric = kFunctionCalls) {
  SymbolTags tags;
  PutSymbol(symbol, &tags);
  AppMetric of;
  of.series.metric.name = metric;
  for (size_t i = 0; i < tags.count; ++i) of.series.tags.Set(kSymbolKeys[i], tags.pieces[i]);
  of.series.tags.Set("object", "liba.so");
  return of;
}

TEST(FunctionNames, ASymbolInPiecesIsPutTogether) {
  for (const size_t parameters : {0u, 123u, 124u, 125u, 600u}) {
    const std::string symbol = "_Z1fv" + std::string(parameters, 'i');
    EXPECT_EQ(SymbolOf(Registered(symbol).series), symbol);
  }
  const std::string umlauts = "_Z" + std::string(63, 'x') + "größe" + std::string(200, 'x') + "äöü";
  EXPECT_EQ(SymbolOf(Registered(umlauts).series), umlauts);
  EXPECT_EQ(SymbolOf(Registered("main").series), "");
  EXPECT_EQ(SymbolOf(Registered("_Z1fv", "my_own_total").series), "");
}

TEST(FunctionNames, AreMadeOnceForAllProcesses) {
  FunctionNames names;
  for (int i = 0; i < 2; ++i) {
    std::vector<AppMetric> metrics = {Registered("_Z1fi"), Registered("_Z1fi", kFunctionSeconds),
                                      Registered("helper"),
                                      Registered("_Z1fPFv" + std::string(200, 'i') + "E")};
    EXPECT_TRUE(names.Translate(metrics));
    EXPECT_EQ(metrics[0].series.tags, (Tags{{"function", "f(int)"}, {"object", "liba.so"}}));
    EXPECT_EQ(metrics[1].series.tags, metrics[0].series.tags);
    EXPECT_EQ(*metrics[2].series.tags.Find("function"), "helper");
    EXPECT_EQ(metrics[3].series.tags.pairs().size(), 2u);
    EXPECT_TRUE(metrics[3].series.tags.Find("function")->starts_with("f(void (*)(int, int"));
  }
}

TEST(FunctionNames, AfterThreeThatTakeTooLongTheyStayAsTheyAre) {
  FunctionNames names;
  for (int i = 0; i < 5; ++i) {
    std::vector<AppMetric> metrics = {Registered(Bomb() + std::string(i, 'i')),
                                      Registered("_Z1f" + std::string(i + 1, 'i'))};
    EXPECT_EQ(names.Translate(metrics), i != 2) << "said once";
    EXPECT_TRUE(names::IsTagValue(*metrics[0].series.tags.Find("function")));
    EXPECT_EQ(metrics[1].series.tags.Find("function")->starts_with("f(int"), i < 3);
  }
}

}  // namespace
}  // namespace sonde::collect::collect_function_names_test
