#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "daemon/head/record/worker.h"

namespace sonde::head::head_worker_test {
namespace {

TEST(Worker, DoesOneJobAfterTheOtherOnAThreadOfItsOwn) {
  Worker worker(0);
  std::vector<int> done;
  std::promise<std::thread::id> last;
  for (int i = 0; i < 3; ++i) worker.Do([&done, i] { done.push_back(i); });
  worker.Do([&] { last.set_value(std::this_thread::get_id()); });
  EXPECT_NE(last.get_future().get(), std::this_thread::get_id());
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2}));
}

TEST(Worker, WaitsForTheJobThatIsDone) {
  std::promise<void> began;
  std::promise<void> go;
  bool finished = false;
  auto worker = std::make_unique<Worker>(0);
  worker->Do([&] {
    began.set_value();
    go.get_future().wait();
    finished = true;
  });
  began.get_future().wait();
  std::thread ends([&] { worker.reset(); });
  go.set_value();
  ends.join();
  EXPECT_TRUE(finished);
}

TEST(Worker, AJobMayHoldTheLastOfIt) {
  struct Whole {
    Worker worker{0};
    std::promise<void>* gone;
    ~Whole() { gone->set_value(); }
  };
  std::promise<void> gone;
  std::promise<void> go;
  auto whole = std::make_shared<Whole>();
  whole->gone = &gone;
  whole->worker.Do([held = whole, &go] { go.get_future().wait(); });
  whole.reset();
  go.set_value();
  gone.get_future().wait();
}

}  // namespace
}  // namespace sonde::head::head_worker_test
