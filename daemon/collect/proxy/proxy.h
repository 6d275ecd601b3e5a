// What programs tell that are linked with the client library of metric-proxy v2 (message.h): group
// kApp.
//
// Programs connect at a socket in the file system (door.h) and send what their metrics have become;
// it is taken as soon as it comes, and the values of then are those of the next tick.
//
// Every series gets the tag `task`, the rank of its process: as the environment of the process
// says, else as the launcher says of its tasks, else that of the node's only task, else 0.
// Processes of one rank share a series:
// counters add up, and of gauges the one that came last counts. Series stay until the end of the
// step with their last values.
//
// Programs are not trusted; the limits below hold for all of them together.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/socket_file.h"
#include "core/status.h"
#include "daemon/collect/proxy/door.h"
#include "daemon/collect/proxy/message.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

class ProxySource final : public Source {
 public:
  struct Options : ProxyDoor::Options {
    size_t max_metrics = 65536;   // series
    size_t max_text = 16u << 20;  // bytes of their names as sent, and of what they are called here
    size_t max_name = 4096;       // bytes of a name as sent
  };

  static Result<std::unique_ptr<ProxySource>> Open(Options options, SocketFile listener);

  std::string_view name() const override { return "proxy"; }
  Group group() const override { return Group::kApp; }
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override;

  // See door.h.
  int fd() const { return door_.fd(); }
  void Poll();
  // For the last sample: reads all that the programs have sent, and then lets nobody in any more.
  void Close();

  // A task of the launcher's, for processes whose environment cannot be read any more.
  void AddTask(uint32_t rank, pid_t pid);

  size_t programs() const { return door_.programs(); }
  const ProxyDoor::Counts& counts() const { return door_.counts(); }
  uint64_t left_out() const { return left_out_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  // Columns by the names that programs give.
  using Columns = std::unordered_map<std::string, size_t, Hash, std::equal_to<>>;

  explicit ProxySource(Options options);
  Status Take(ProxyProgram& program, std::string_view bytes);
  void Record(int rank);
  std::optional<size_t> Column(int rank);
  std::optional<size_t> AddColumn(Series series, Columns& known);
  int RankOf(const ProxyProgram& program) const;
  void LeaveOut(const std::string& why);

  const Options options_;
  ProxyMessage message_;  // the one being taken
  std::map<int, Columns> ranks_;
  std::unordered_map<std::string, size_t> columns_;  // by SeriesName
  std::unordered_map<pid_t, uint32_t> tasks_;
  size_t text_ = 0;
  uint64_t left_out_ = 0;
  bool said_left_out_ = false;
  ProxyDoor door_;
};

}  // namespace sonde::collect
