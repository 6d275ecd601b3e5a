// Functions for the tests of libsonde_functions, compiled with -finstrument-functions: those of
// C++.
#include <csignal>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/instrumented.h"

#define NOINLINE __attribute__((noinline))
#define BARE __attribute__((no_instrument_function))

namespace shapes {
namespace {

volatile int sink = 0;

NOINLINE void Hidden() { sink = sink + 1; }

}  // namespace

class Square {
 public:
  NOINLINE void Turn(int degrees) { sink = sink + degrees; }
  NOINLINE void Turn(double degrees) { sink = sink + static_cast<int>(degrees); }
  template <typename T>
  NOINLINE void Scale(T by) {
    sink = sink + static_cast<int>(by);
  }
};

NOINLINE void Throw() {
  if (sink >= 0) throw 1;
}

template <typename A, typename B>
NOINLINE void TakeTwo(const A&, const B&) {
  sink = sink + 1;
}

// Their constructors by themselves and as those of a base differ.
struct Shape {
  NOINLINE Shape() { sink = sink + 1; }
};
struct Circle : virtual Shape {
  NOINLINE Circle() { sink = sink + 1; }
  NOINLINE virtual ~Circle() { sink = sink + 1; }
};
struct Wheel : Circle {
  BARE Wheel() {}
  BARE ~Wheel() override {}
};

NOINLINE void InHandler() { sink = sink + 1; }

}  // namespace shapes

BARE static void OnSignal(int) { shapes::InHandler(); }
BARE void call_cxx_in_handler() {
  std::signal(SIGUSR1, OnSignal);
  std::raise(SIGUSR1);
}

BARE void call_cxx_long_name() {
  const std::pair<std::vector<std::string>, std::map<std::string, std::vector<int>>> one;
  const std::map<std::string, std::vector<std::pair<long, std::vector<double>>>> other;
  for (int i = 0; i < 2; ++i) shapes::TakeTwo(one, other);
}

BARE void call_cxx_constructors() {
  for (int i = 0; i < 2; ++i) {
    shapes::Circle* volatile alone = new shapes::Circle;
    delete alone;
  }
  for (int i = 0; i < 3; ++i) shapes::Wheel wheel;
}

BARE void call_cxx() {
  shapes::Square square;
  for (int i = 0; i < 3; ++i) square.Turn(90);
  for (int i = 0; i < 2; ++i) square.Turn(0.5);
  square.Scale(2L);
  shapes::Hidden();
  for (int i = 0; i < 4; ++i) {
    try {
      shapes::Throw();
    } catch (int) {
    }
  }
}
