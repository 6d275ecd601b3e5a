#include "daemon/loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace sonde::loop_test {
namespace {

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(pipe(fds), 0);
    read_end.Reset(fds[0]);
    write_end.Reset(fds[1]);
  }
  void Write() { EXPECT_EQ(write(write_end.get(), "x", 1), 1); }
  UniqueFd read_end;
  UniqueFd write_end;
};

TEST(Loop, AnEventReachesOnlyTheWatchItWasFor) {
  Loop loop;
  Pipe a;
  Pipe b;
  Pipe quiet;
  int wrong = 0;
  // Whichever of the two is called first closes the other and reuses its number.
  const auto replace = [&](Pipe& other) {
    const int number = other.read_end.get();
    loop.Unwatch(number);
    ASSERT_EQ(dup2(quiet.read_end.get(), number), number);
    ASSERT_TRUE(loop.Watch(number, EPOLLIN, [&](uint32_t) { ++wrong; }).ok());
  };
  ASSERT_TRUE(loop.Watch(a.read_end.get(), EPOLLIN,
                         [&](uint32_t) {
                           loop.Unwatch(a.read_end.get());
                           replace(b);
                         })
                  .ok());
  ASSERT_TRUE(loop.Watch(b.read_end.get(), EPOLLIN,
                         [&](uint32_t) {
                           loop.Unwatch(b.read_end.get());
                           replace(a);
                         })
                  .ok());
  a.Write();
  b.Write();
  loop.After(kMillisecond, [&] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(wrong, 0);
}

TEST(Loop, SleepsOnlyWhenEveryCheckAgreesAndRunsAgainAfterAStop) {
  Loop loop;
  int asked = 0;
  Loop::SleepCheckId busy = 0;
  busy = loop.AddSleepCheck([&] {
    if (++asked < 3) return false;
    loop.RemoveSleepCheck(busy);
    loop.Stop();
    return true;
  });
  loop.AddSleepCheck([] { return true; });
  loop.Run();
  EXPECT_EQ(asked, 3);
  bool timer = false;
  loop.After(kMillisecond, [&] {
    timer = true;
    loop.Stop();
  });
  loop.Run();
  EXPECT_TRUE(timer);
}

TEST(Loop, APostFromAnotherThreadWakesIt) {
  Loop loop;
  bool ran = false;
  std::thread other([&] {
    loop.Post([&] {
      ran = true;
      loop.Stop();
    });
  });
  loop.Run();
  other.join();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace sonde::loop_test
