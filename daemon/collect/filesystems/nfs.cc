// /proc/net/rpc/nfs: the NFS client's calls, all mounts together. The file is there once the kernel
// has its NFS client loaded.
//
// A line "procN COUNT ..." has a number for each procedure of version N, in the kernel's order
// (include/linux/nfs.h, nfs3.h, nfs4.h). That of version 4 differs between kernels behind SECINFO,
// so what follows is left out.
#include <iterator>
#include <span>

#include "daemon/collect/filesystems/filesystem_sources.h"

namespace sonde::collect {
namespace {

constexpr MetricDecl NfsCounter(std::string_view name, uint8_t level, std::string_view help) {
  return {name, "1", MetricType::kCounter, level, Reduction::kSum, help};
}
// The names are node_exporter's. In the order of the file's line "rpc".
constexpr MetricDecl kRpc[] = {
    NfsCounter("node_nfs_rpcs_total", 2, "Calls to NFS servers."),
    NfsCounter("node_nfs_rpc_retransmissions_total", 2,
               "Calls that were sent again because the server did not answer."),
    NfsCounter("node_nfs_rpc_authentication_refreshes_total", 2,
               "How often a call had to renew its credentials."),
};
constexpr MetricDecl kRequests = NfsCounter("node_nfs_requests_total", 4,
                                            "Calls by version of NFS and procedure. Tags method, "
                                            "proto.");

constexpr std::string_view kMethods3[] = {
    "Null",    "GetAttr",     "SetAttr", "Lookup", "Access",   "ReadLink", "Read",   "Write",
    "Create",  "MkDir",       "SymLink", "MkNod",  "Remove",   "RmDir",    "Rename", "Link",
    "ReadDir", "ReadDirPlus", "FsStat",  "FsInfo", "PathConf", "Commit"};
constexpr std::string_view kMethods4[] = {"Null",        "Read",
                                          "Write",       "Commit",
                                          "Open",        "OpenConfirm",
                                          "OpenNoattr",  "OpenDowngrade",
                                          "Close",       "SetAttr",
                                          "FsInfo",      "Renew",
                                          "SetClientID", "SetClientIDConfirm",
                                          "Lock",        "LockT",
                                          "LockU",       "Access",
                                          "GetAttr",     "Lookup",
                                          "LookupRoot",  "Remove",
                                          "Rename",      "Link",
                                          "SymLink",     "Create",
                                          "PathConf",    "StatFs",
                                          "ReadLink",    "ReadDir",
                                          "ServerCaps",  "DelegReturn",
                                          "GetAcl",      "SetAcl",
                                          "FsLocations", "ReleaseLockowner",
                                          "SecInfo"};

struct Version {
  std::string_view key;
  std::string_view proto;
  std::span<const std::string_view> methods;
};
constexpr Version kVersions[] = {{"proc3", "3", kMethods3}, {"proc4", "4", kMethods4}};

class NfsSource final : public FileSource {
 public:
  NfsSource(const Roots& roots, int level, ReadBuffer& buffer)
      : FileSource(roots.proc + "/net/rpc/nfs", Shape::kRecords, 4096, buffer), level_(level) {}

  std::string_view name() const override { return "nfs"; }
  bool counts_from_boot() const override { return true; }
  void Parse(std::string_view text) override {
    if (series_.empty()) Declare();
    ClearValues();
    for (Cursor lines(text); !lines.AtEnd();) {
      if (lines.Rest().find('\n') == std::string_view::npos) break;  // cut short
      Cursor line(lines.Line());
      const std::string_view key = line.Word();
      if (key == "rpc") ReadNumbers(line, std::size(kRpc), 0);
      size_t column = std::size(kRpc);
      for (const Version& version : kVersions) {
        if (level_ < kRequests.level) break;
        if (key == version.key) {
          line.Word();  // how many follow
          ReadNumbers(line, version.methods.size(), column);
        }
        column += version.methods.size();
      }
    }
  }

 private:
  void Declare() {
    for (const MetricDecl& decl : kRpc) AddSeries(decl);
    if (level_ >= kRequests.level) {
      for (const Version& version : kVersions) {
        for (const std::string_view method : version.methods) {
          AddSeries(kRequests,
                    {{"method", std::string(method)}, {"proto", std::string(version.proto)}});
        }
      }
    }
    ++generation_;
  }
  void ReadNumbers(Cursor& line, size_t count, size_t column) {
    for (size_t i = 0; i < count; ++i) values_[column + i] = line.Number();
  }

  const int level_;
};

}  // namespace

std::unique_ptr<FileSource> MakeNfsSource(const Roots& roots, int level, ReadBuffer& buffer) {
  return std::make_unique<NfsSource>(roots, level, buffer);
}

std::vector<MetricDecl> NfsMetrics() {
  std::vector<MetricDecl> metrics(std::begin(kRpc), std::end(kRpc));
  metrics.push_back(kRequests);
  return metrics;
}

}  // namespace sonde::collect
