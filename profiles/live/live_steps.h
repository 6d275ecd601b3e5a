// What lies in live/: steps that run, and finished or abandoned ones that wait to be ingested.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "profiles/disk/archive_dir.h"

namespace sonde {

// Where a running step is served.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
  std::string token;
  int pid = 0;
};

struct LiveStep {
  std::string name;  // of its directory
  std::string key;
  LivePaths paths{""};
  bool running = false;  // its writer holds it, or is on another host and was active just now
  JobDescription job;    // from description.json, or what the key tells
  Endpoint endpoint;     // if running and known
  std::string failure;   // "" or why its writer could not write
};

// What a writer says in its lock file: its host and, in another line, what went wrong. That takes
// no space that the file has not got already, so it can be said on a full disk.
std::string LockText(std::string_view host, std::string_view failure);

// In the order of their names. Directories that are being made or deleted, and damaged ones that
// were ingested as far as they could be read, are left out.
std::vector<LiveStep> ScanLive(const ArchivePaths& archive);
// The keys of the profiles that they are, or are parts of.
std::set<std::string> LiveKeys(const ArchivePaths& archive);
// One of them; kNotFound for a name that is none.
Result<LiveStep> ReadLive(const ArchivePaths& archive, const std::string& name);

// What the writers of a step have left of themselves for another that goes on with it.
struct Heritage {
  JobDescription job;
  std::string state;  // the newest, as LiveArchive::PutState was given it
};
// kNotFound if this archive has nothing of the step.
Result<Heritage> ReadHeritage(const std::string& archive, const JobDescription& job);

Result<Endpoint> EndpointFromJson(std::string_view json);

}  // namespace sonde
