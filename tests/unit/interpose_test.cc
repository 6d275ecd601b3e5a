// What libsonde-mpi.so and libsonde-io.so count is what a program did, and the program is not
// disturbed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "daemon/collect/app/app.h"
#include "tests/unit/client_driver.h"
#include "tests/unit/paths.h"

namespace sonde::collect {
namespace {

using Wanted = std::map<std::string, std::string>;

class Interposed : public testing::Test {
 protected:
  Interposed() {
    options_.socket = "sonde-interpose-" + std::to_string(getpid());
    options_.uid = geteuid();
    char name[] = "/tmp/sonde-interpose-XXXXXX";
    directory_ = mkdtemp(name);
    auto source = AppSource::Open(options_);
    if (source.ok()) source_ = std::move(source).value();
  }
  ~Interposed() override { std::filesystem::remove_all(directory_); }

  void SetUp() override { ASSERT_NE(source_, nullptr); }

  ClientProcess::Environment Environment(const std::string& preload, int level = 1) const {
    return {{"SONDE_SOCKET", options_.socket},
            {"SONDE_LEVEL", std::to_string(level)},
            {"LD_PRELOAD", preload},
            {"DIRECTORY", directory_},
            {"PATH", "/usr/bin:/bin"}};
  }
  static std::string Mpi() { return std::string(kLibsonde) + ":" + kLibsondeMpi; }
  static std::string Io() { return std::string(kLibsonde) + ":" + kLibsondeIo; }

  void Sample() {
    now_ += kSecond;
    source_->Sample(now_);
  }
  // The sum over the series that have these tags; -1 if there is none.
  double Sum(const std::string& metric, const Wanted& tags = {}) const {
    double sum = 0;
    bool found = false;
    for (size_t i = 0; i < source_->series().size(); ++i) {
      const Series& series = source_->series()[i];
      if (series.metric.name != metric) continue;
      size_t matches = 0;
      for (const auto& [key, value] : series.tags.pairs()) {
        const auto wanted = tags.find(std::string(key));
        if (wanted != tags.end() && wanted->second == value) ++matches;
      }
      if (matches < tags.size() || std::isnan(source_->values()[i])) continue;
      sum += source_->values()[i];
      found = true;
    }
    return found ? sum : -1;
  }
  double Calls(const std::string& api, const std::string& operation) const {
    return Sum("io_calls_total", {{"api", api}, {"operation", operation}});
  }
  bool AnySeries(const std::string& prefix) const {
    for (const Series& series : source_->series()) {
      if (series.metric.name.starts_with(prefix)) return true;
    }
    return false;
  }

  AppSource::Options options_;
  std::unique_ptr<AppSource> source_;
  std::string directory_;
  Nanos now_ = 1'000 * kSecond;
};

class InterposedMpi : public Interposed, public testing::WithParamInterface<const char*> {
 protected:
  // Loads the module as `scope` says and begins.
  void Begin(ClientProcess& app) {
    ASSERT_EQ(app.Do(std::string("load ") + GetParam()), "ok");
    ASSERT_EQ(app.Do("call init"), "0");
  }
};

// As a library of the program, and as Python's modules load theirs.
INSTANTIATE_TEST_SUITE_P(Scopes, InterposedMpi, testing::Values("global", "local"));

TEST_P(InterposedMpi, CallsAndBytesOfC) {
  ClientProcess app(Environment(Mpi()));
  Begin(app);
  EXPECT_EQ(app.Do("call send 10"), "0");
  EXPECT_EQ(app.Do("call send_to_nobody"), "0");
  EXPECT_EQ(app.Do("call failing_send"), "1");
  EXPECT_EQ(app.Do("call receive 5"), "0");
  EXPECT_EQ(app.Do("call barrier"), "0");
  EXPECT_EQ(app.Do("call broadcast"), "0");
  EXPECT_EQ(app.Do("call broadcast_between"), "0");
  EXPECT_EQ(app.Do("call alltoallv"), "0");
  Sample();
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "p2p"}}), 17);
  EXPECT_EQ(Sum("mpi_sent_bytes_total", {{"class", "p2p"}}), 10 * 24);
  EXPECT_EQ(Sum("mpi_message_bytes_count", {{"class", "p2p"}}), 10);
  EXPECT_EQ(Sum("mpi_message_bytes_max", {{"class", "p2p"}}), 24);
  // Half of the room was filled.
  EXPECT_EQ(Sum("mpi_received_bytes_total", {{"class", "p2p"}}), 5 * 80);
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "collective"}}), 4);
  EXPECT_EQ(Sum("mpi_sent_bytes_total", {{"class", "collective"}}), 40 + (1 + 2 + 3 + 4) * 8);
  EXPECT_EQ(Sum("mpi_received_bytes_total", {{"class", "collective"}}), 8 * 8);
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "other"}}), 1);
  EXPECT_GT(Sum("mpi_seconds_total"), Sum("mpi_wait_seconds_total"));
  EXPECT_GT(Sum("mpi_wait_seconds_total"), 0);
  EXPECT_EQ(app.Do("call finalize"), "0");
  EXPECT_EQ(app.Do("call send"), "0");
  Sample();
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "p2p"}}), 17) << "counted after MPI_Finalize";
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "other"}}), 2);
  EXPECT_GT(Sum("mpi_time_ratio"), 0);
  EXPECT_LE(Sum("mpi_time_ratio"), 1);
}

TEST_P(InterposedMpi, CallsOfFortranAreCountedOnceWhetherOrNotTheyCallThoseOfC) {
  ClientProcess app(Environment(Mpi()));
  Begin(app);
  EXPECT_EQ(app.Do("call fortran_send 10"), "0");
  EXPECT_EQ(app.Do("call fortran_2008_send 3"), "0");
  EXPECT_EQ(app.Do("call fortran_receive 2"), "0");
  EXPECT_EQ(app.Do("call fortran_barrier 7"), "0");
  Sample();
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "p2p"}}), 17);
  EXPECT_EQ(Sum("mpi_sent_bytes_total", {{"class", "p2p"}}), 13 * 24);
  EXPECT_EQ(Sum("mpi_received_bytes_total", {{"class", "p2p"}}), 4 * 80);
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "collective"}}), 7);
}

TEST_P(InterposedMpi, WhatTheLibraryCallsItselfIsNotTheProgramS) {
  ClientProcess app(Environment(Mpi()));
  Begin(app);
  EXPECT_EQ(app.Do("call allgather 3"), "0");
  Sample();
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "collective"}}), 3);
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "p2p"}}), -1);
  EXPECT_EQ(Sum("mpi_received_bytes_total", {{"class", "collective"}}), 3 * 4 * 8);
}

TEST_P(InterposedMpi, ThreadsCountInFull) {
  ClientProcess app(Environment(Mpi()));
  Begin(app);
  EXPECT_EQ(app.Do("call send 20000 4"), "0");
  Sample();
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "p2p"}}), 80000);
  EXPECT_EQ(Sum("mpi_sent_bytes_total", {{"class", "p2p"}}), 80000 * 24);
}

TEST_P(InterposedMpi, FunctionsAreToldApartAtLevelFour) {
  ClientProcess app(Environment(Mpi(), 4));
  Begin(app);
  app.Do("call send 2");
  app.Do("call receive 3");
  Sample();
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "p2p"}, {"function", "MPI_Send"}}), 2);
  EXPECT_EQ(Sum("mpi_calls_total", {{"class", "p2p"}, {"function", "MPI_Recv"}}), 3);
}

TEST_P(InterposedMpi, WithoutTelemetryOrLibsondeOrADaemonCallsArePassedOn) {
  for (const auto& [preload, socket] : {std::pair<std::string, std::string>{Mpi(), ""},
                                        {kLibsondeMpi, options_.socket},
                                        {Mpi(), "sonde-nobody-listens-here"}}) {
    ClientProcess::Environment environment = Environment(preload);
    environment["SONDE_SOCKET"] = socket;
    ClientProcess app(environment);
    Begin(app);
    EXPECT_EQ(app.Do("call send 3"), "0");
    EXPECT_EQ(app.Do("call failing_send"), "1");
    EXPECT_EQ(app.Do("call receive"), "0");
    EXPECT_EQ(app.Do("call fortran_barrier"), "0");
    EXPECT_EQ(app.Do("call finalize"), "0");
    EXPECT_EQ(app.End(), 0);
    Sample();
    EXPECT_FALSE(AnySeries("mpi_"));
  }
}

TEST_F(Interposed, AProgramWithoutMpiDoesNotAttach) {
  ClientProcess app(Environment(Mpi()));
  EXPECT_EQ(app.Do("posix"), "ok");
  Sample();
  EXPECT_EQ(source_->processes(), 0u);
  EXPECT_TRUE(source_->series().empty());
}

using InterposedIo = Interposed;

TEST_F(InterposedIo, DescriptorsInFull) {
  ClientProcess app(Environment(Io()));
  EXPECT_EQ(app.Do("posix"), "ok");
  Sample();
  EXPECT_EQ(Calls("posix", "open"), 1);
  EXPECT_EQ(Calls("posix", "write"), 12);
  EXPECT_EQ(Calls("posix", "read"), 7);
  EXPECT_EQ(Calls("posix", "seek"), 1);
  EXPECT_EQ(Calls("posix", "sync"), 1);
  EXPECT_EQ(Calls("posix", "close"), 1);
  EXPECT_EQ(Sum("io_written_bytes_total", {{"api", "posix"}}), 1000 + 10 + 50);
  EXPECT_EQ(Sum("io_read_bytes_total", {{"api", "posix"}}), 750 + 20 + 50);
  EXPECT_EQ(Sum("io_size_bytes_count", {{"operation", "write"}}), 12);
  EXPECT_EQ(Sum("io_size_bytes_sum", {{"operation", "read"}}), 820);
  EXPECT_GT(Sum("io_seconds_total", {{"operation", "write"}}), 0);
  EXPECT_FALSE(AnySeries("io_calls_total{api=\"stdio\""));
}

TEST_F(InterposedIo, BuffersOfStdioOnce) {
  ClientProcess app(Environment(Io()));
  EXPECT_EQ(app.Do("stdio"), "ok");
  Sample();
  EXPECT_EQ(Calls("stdio", "open"), 2);
  EXPECT_EQ(Calls("stdio", "close"), 2);
  EXPECT_EQ(Calls("stdio", "write"), 103);
  EXPECT_EQ(Calls("stdio", "read"), 104);
  EXPECT_EQ(Sum("io_written_bytes_total", {{"api", "stdio"}}), 1015);
  EXPECT_EQ(Sum("io_read_bytes_total", {{"api", "stdio"}}), 1015);
  EXPECT_EQ(Calls("posix", "write"), -1) << "the C library's own calls were seen";
}

TEST_F(InterposedIo, OperationsOnNamesWithTheirErrors) {
  ClientProcess app(Environment(Io()));
  EXPECT_EQ(app.Do("metadata"), "ok");
  Sample();
  // What is in a folder that does not exist is nobody's.
  EXPECT_EQ(Calls("posix", "metadata"), 8);
}

TEST_F(InterposedIo, TheFilesystemIsNamedByTypeAndMount) {
  struct stat here, shm;
  if (stat("/tmp", &here) != 0 || stat("/dev/shm", &shm) != 0 || here.st_dev == shm.st_dev) {
    GTEST_SKIP() << "/tmp and /dev/shm are one filesystem here";
  }
  ClientProcess::Environment environment = Environment(Io());
  environment["DIRECTORY"] = "/dev/shm";
  {
    ClientProcess app(environment);
    EXPECT_EQ(app.Do("posix"), "ok");
  }
  unlink("/dev/shm/data");
  ClientProcess app(Environment(Io()));
  EXPECT_EQ(app.Do("posix"), "ok");
  Sample();
  EXPECT_EQ(Sum("io_written_bytes_total", {{"fstype", "tmpfs"}, {"mountpoint", "/dev/shm"}}), 1060);
  EXPECT_EQ(Sum("io_written_bytes_total"), 2120);
}

TEST_F(InterposedIo, WhatIsNoFileIsNotCounted) {
  ClientProcess app(Environment(Io()));
  EXPECT_EQ(app.Do("no_files"), "ok");
  Sample();
  EXPECT_EQ(Sum("io_written_bytes_total"), -1);
  EXPECT_EQ(Sum("io_calls_total", {{"operation", "metadata"}}), -1);
}

TEST_F(InterposedIo, LibsondeSOwnCallsAreNotTheProgramS) {
  ClientProcess app(Environment(Io()));
  EXPECT_EQ(app.Do("metric"), "ok");
  Sample();
  EXPECT_EQ(source_->processes(), 1u);
  EXPECT_FALSE(AnySeries("io_"));
}

TEST_F(InterposedIo, NumbersOfDescriptorsAreFollowed) {
  ClientProcess app(Environment(Io()));
  EXPECT_EQ(app.Do("reuse"), "ok");
  Sample();
  EXPECT_EQ(Sum("io_written_bytes_total"), 7 + 5);
}

TEST_F(InterposedIo, AChildIsCountedOnceItMovesData) {
  ClientProcess app(Environment(Io()));
  EXPECT_EQ(app.Do("fork"), "ok");
  Sample();
  EXPECT_EQ(Sum("io_written_bytes_total"), 3 + 4 + 40);
  EXPECT_EQ(source_->counts().attached, 2u) << "the child that became another program attached";
}

TEST_F(InterposedIo, AChildInTheSameMemoryDoesNotMixUpDescriptors) {
  ClientProcess app(Environment(Io()));
  EXPECT_EQ(app.Do("vfork"), "ok");
  Sample();
  EXPECT_EQ(Sum("io_written_bytes_total"), 3 + 4);
}

TEST_F(InterposedIo, ASignalHandlerMayWriteAtAnyTime) {
  ClientProcess app(Environment(Io(), 4));
  EXPECT_EQ(app.Do("handler"), "ok");
  Sample();
  // What comes while libsonde holds its mutex may be left out.
  EXPECT_GT(Sum("io_written_bytes_total"), 1000);
}

TEST_F(InterposedIo, WithoutTelemetryOrLibsondeOrADaemonCallsArePassedOn) {
  for (const auto& [preload, socket] : {std::pair<std::string, std::string>{Io(), ""},
                                        {kLibsondeIo, options_.socket},
                                        {Io(), "sonde-nobody-listens-here"}}) {
    ClientProcess::Environment environment = Environment(preload);
    environment["SONDE_SOCKET"] = socket;
    ClientProcess app(environment);
    for (const char* command : {"posix", "stdio", "metadata", "no_files", "reuse", "vfork"}) {
      EXPECT_EQ(app.Do(command), "ok") << command;
    }
    EXPECT_EQ(app.End(), 0);
    Sample();
    EXPECT_FALSE(AnySeries("io_"));
  }
}

// A child of a process of slurmstepd that is to become a task.
TEST_F(InterposedIo, ATaskPrologIsNeitherCountedNorSeesThem) {
  // By the names under which they are installed.
  const std::string libsonde = std::filesystem::path(kLibsonde).parent_path() / "libsonde.so.1";
  const std::string io = libsonde + ":" + kLibsondeIo;
  ClientProcess::Environment environment = Environment(io);
  environment["SLURM_TASK_PID"] = std::to_string(getpid());
  {
    ClientProcess of_the_task(environment);
    EXPECT_EQ(of_the_task.Do("posix"), "ok");
    Sample();
    EXPECT_EQ(Sum("io_written_bytes_total"), 1060);
  }
  char name[16];
  prctl(PR_GET_NAME, name);
  prctl(PR_SET_NAME, "slurmstepd");
  for (const std::string& preload : {io, libsonde + ":" + kLibsondeMpi, io + " libm.so.6"}) {
    environment["LD_PRELOAD"] = preload;
    ClientProcess prolog(environment);
    EXPECT_EQ(prolog.Do("preloaded"), preload.ends_with("libm.so.6") ? "libm.so.6" : "none");
    EXPECT_EQ(prolog.Do("posix"), "ok");
    Sample();
    EXPECT_EQ(source_->counts().attached, 1u);
  }
  prctl(PR_SET_NAME, name);
}

TEST_F(InterposedIo, BothTogether) {
  ClientProcess app(Environment(Mpi() + ":" + kLibsondeIo));
  EXPECT_EQ(app.Do("load global"), "ok");
  EXPECT_EQ(app.Do("call init"), "0");
  EXPECT_EQ(app.Do("call send"), "0");
  EXPECT_EQ(app.Do("posix"), "ok");
  Sample();
  EXPECT_EQ(Sum("mpi_calls_total"), 2);
  EXPECT_EQ(Sum("io_written_bytes_total"), 1060);
}

}  // namespace
}  // namespace sonde::collect
