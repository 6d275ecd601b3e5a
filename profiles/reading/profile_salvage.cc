// A stored profile of which a record cannot be read: what the others tell.
#include <leveldb/db.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "profiles/disk/damage.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/model/parts.h"
#include "profiles/reading/profile_reader.h"
#include "profiles/records/keys.h"
#include "profiles/records/stored_bytes.h"

namespace sonde {

void ProfileReader::Found(std::string_view what, const Status& why) const {
  if (damage_ != nullptr) damage_->Add(std::string(what) + " of " + key_, why);
}

bool ProfileReader::IsThere() const {
  std::string ignored;
  for (const std::string& at : {keys::Description(key_), keys::Profile(key_)}) {
    if (!db_.Get(CheckedRead(), at, &ignored).IsNotFound()) return true;
  }
  return false;
}

bool ProfileReader::IsReadable() const { return Description().ok() || StoredProfile().ok(); }

// Only a profile of db/ has a number of blocks.
bool ProfileReader::IsFinished() const {
  std::string ignored;
  return !db_.Get(CheckedRead(), keys::BlockCount(key_), &ignored).IsNotFound();
}

std::vector<Part> ProfileReader::ReadableParts() const {
  std::vector<Part> parts;
  const std::string prefix = keys::Parts(key_);
  const std::unique_ptr<leveldb::Iterator> it(db_.NewIterator(CheckedScan()));
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    auto profile = ProfileFromJson(View(it->value()));
    if (!profile.ok()) continue;
    parts.push_back({PartId::Parse(View(it->key()).substr(prefix.size())), *std::move(profile)});
  }
  return parts;
}

Result<DescriptionPtr> ProfileReader::Described() const {
  const auto stored_job = Description();
  if (stored_job.ok()) return stored_job;
  const Status& why = stored_job.status();
  if (why.code() == Code::kNotFound && !IsThere()) return why;
  Found("the description", why);
  JobDescription job;
  if (auto stored = StoredProfile(); stored.ok()) {
    job = std::move(stored->job);
  } else if (auto parts = ReadableParts(); !parts.empty()) {
    job = std::move(MergeParts(std::move(parts)).job);
  } else {
    auto known = keys::DescribeKey(key_);
    if (!known) return why;
    job = *std::move(known);
    job.state = EndState::kLost;
  }
  job.notes.push_back("The description of the step could not be read (" +
                      std::string(why.message()) + ").");
  return std::make_shared<const JobDescription>(std::move(job));
}

Profile ProfileReader::Whole(std::vector<Part> parts) const {
  const size_t count = parts.size();
  Profile whole = MergeParts(std::move(parts));
  ReadTally tally;
  Profile assembled = Assemble(whole.job, &tally);
  whole.footprint = std::move(assembled.footprint);
  whole.job.end = std::max(whole.job.end, tally.last);
  whole.job.coverage = CoverageOf(whole.job, tally.nodes_at);
  whole.cost.stored_bytes = StoredBytes(tally.content, whole, count);
  return whole;
}

Result<Profile> ProfileReader::Load() const {
  auto stored = StoredProfile();
  if (stored.ok()) return stored;
  const bool none = stored.status().code() == Code::kNotFound && !IsFinished();
  if (!none) Found("the summary", stored.status());
  std::string rest = "stored blocks";
  Result<Profile> made = stored;
  if (auto parts = none ? std::vector<Part>() : ReadableParts(); !parts.empty()) {
    made = parts.size() == 1 && parts.front().finished() ? std::move(parts.front().profile)
                                                         : Whole(std::move(parts));
    rest = "own record and stored blocks";
  } else {
    const auto job = Described();
    if (!job.ok()) return job.status();
    made = Assemble(**job);
  }
  if (none) return made;
  made->job.notes.push_back("The summary of the step could not be read (" +
                            std::string(stored.status().message()) + "); this is what its " + rest +
                            " tell.");
  return made;
}

}  // namespace sonde
