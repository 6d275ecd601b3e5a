// The series that nodes of the running step have left in its archive, for answers about nodes that
// are gone.
//
// Thread safety: every method from any thread; Read waits for the disk.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "profiles/archive/archive.h"
#include "series/query/query.h"

namespace sonde::head {

class StoredSeries {
 public:
  virtual ~StoredSeries() = default;

  // What the query needs of the series of these hosts, with the tag host. kLimit if that is more
  // than kMaxPoints.
  static constexpr size_t kMaxPoints = 4u << 20;  // 64 MiB
  virtual Result<std::vector<SeriesData>> Read(const QuerySpec& spec,
                                               const std::set<std::string>& hosts) const = 0;
};

// Reads them from the archive in which the head's own writer puts them.
class ArchivedSeries final : public StoredSeries {
 public:
  // `key`: of the step's profile.
  ArchivedSeries(std::string archive, std::string key)
      : path_(std::move(archive)), key_(std::move(key)) {}

  Result<std::vector<SeriesData>> Read(const QuerySpec& spec,
                                       const std::set<std::string>& hosts) const override;

 private:
  Result<std::shared_ptr<const Archive>> Opened() const;

  const std::string path_;
  const std::string key_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Archive> archive_;  // once somebody has asked
};

}  // namespace sonde::head
