#include "daemon/head/record/archive_writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/log.h"
#include "profiles/archive/ingest_one.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/stored_bytes.h"

namespace sonde::head {
namespace {

constexpr Nanos kSignOfLife = 60 * kSecond;
constexpr int kFinishTries = 3;  // each on a database that was opened anew

template <typename B>
size_t BytesOf(const B& block) {
  return block.bytes->size() + (block.schema == nullptr ? 0 : block.schema->encoded().size());
}

// Whether the same block may be stored later: the disk failed, not the block.
bool IsOfTheDisk(const Status& status) {
  const Code code = status.code();
  return !status.ok() && code != Code::kNotFound && code != Code::kInvalid && code != Code::kLimit;
}

}  // namespace

ArchiveWriter::ArchiveWriter(Loop& loop, std::string archive, const Retention& limits, Nanos pause)
    : loop_(loop), archive_(std::move(archive)), limits_(limits), pause_(pause), thread_([this] {
        Work();
      }) {}

ArchiveWriter::~ArchiveWriter() {
  EnqueueGathered();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  ready_.notify_one();
  thread_.join();
}

void ArchiveWriter::Enqueue(Order order) {
  {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
  }
  ready_.notify_one();
}

void ArchiveWriter::Work() {
  Nanos touched = Clock::System().Monotonic();
  std::unique_lock lock(mutex_);
  while (true) {
    const std::chrono::nanoseconds pause(kSignOfLife);
    const bool any = ready_.wait_for(lock, pause, [this] { return stop_ || !orders_.empty(); });
    // Also while all orders fail, as on a full disk.
    if (const Nanos now = Clock::System().Monotonic(); now - touched >= kSignOfLife) {
      touched = now;
      lock.unlock();
      if (live_ != nullptr) live_->Touch();
      lock.lock();
    }
    if (!any) continue;
    if (orders_.empty()) return;
    const Order order = std::move(orders_.front());
    orders_.pop_front();
    works_ = true;
    lock.unlock();
    order();
    lock.lock();
    works_ = false;
  }
}

bool ArchiveWriter::Idle() const {
  const std::lock_guard lock(mutex_);
  return orders_.empty() && !works_;
}

void ArchiveWriter::Note(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (status.ok()) {
    if (!failure_.ok()) log::Info("archive {}: it can be written again", archive_);
    failure_ = {};
    return;
  }
  if (failure_.ok()) log::Error("archive {}: {}", archive_, status.message());
  failure_ = status;
  next_attempt_ = Clock::System().Monotonic() + pause_;
}

bool ArchiveWriter::PauseIsOver() const {
  const std::lock_guard lock(mutex_);
  return failure_.ok() || Clock::System().Monotonic() >= next_attempt_;
}

Status ArchiveWriter::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

uint64_t ArchiveWriter::accepted_bytes() const {
  const std::lock_guard lock(mutex_);
  return accepted_bytes_;
}

double ArchiveWriter::profile_bytes() const {
  const std::lock_guard lock(mutex_);
  return profile_bytes_;
}

uint64_t ArchiveWriter::lost_bytes() const {
  const std::lock_guard lock(mutex_);
  return lost_bytes_;
}

void ArchiveWriter::Create(const JobDescription& job) {
  Enqueue([this, job] {
    job_ = job;
    make_ = [this] { return LiveArchive::Create(archive_, job_); };
    static_cast<void>(Open(/*at_once=*/true));
  });
}

void ArchiveWriter::Continue(const JobDescription& job, std::string node) {
  Enqueue([this, job, node = std::move(node)] {
    job_ = job;
    make_ = [this, node] { return LiveArchive::Continue(archive_, job_, node); };
    static_cast<void>(Open(/*at_once=*/true));
  });
}

Status ArchiveWriter::Open(bool at_once) {
  if (make_ == nullptr) return {Code::kUnavailable, "the profile is sealed"};
  if (!at_once && !PauseIsOver()) return failure();
  if (live_ != nullptr) return {};
  auto live = make_();
  Status made = live.status();
  // Of a file or directory. A block hears this code of its schema alone.
  if (made.code() == Code::kNotFound) made = {Code::kIo, std::string(made.message())};
  Note(made);
  if (!made.ok()) return made;
  live_ = *std::move(live);
  live_path_ = live_->path();
  if (put_endpoint_ != nullptr) Note(put_endpoint_());
  return {};
}

void ArchiveWriter::PutDescription(const JobDescription& job) {
  Enqueue([this, job] {
    job_ = job;
    if (Open().ok()) Note(live_->PutDescription(job));
  });
}

void ArchiveWriter::PutMoments(StepMoments moments) {
  Enqueue([this, moments = std::move(moments)] {
    if (Open().ok()) Note(live_->PutMoments(job_, moments));
  });
}

void ArchiveWriter::PutEndpoint(Endpoint endpoint) {
  Enqueue([this, endpoint = std::move(endpoint)] {
    put_endpoint_ = [this, endpoint] { return live_->PutEndpoint(endpoint); };
    if (live_ != nullptr) Note(put_endpoint_());
  });
}

Status ArchiveWriter::Reserve(const Block& block) {
  const size_t size = BytesOf(block);
  const bool pause = !block.keep && !PauseIsOver();
  const std::lock_guard lock(mutex_);
  if (pause) return failure_;
  if (waiting_bytes_ + size > kMaxWaiting) return {Code::kLimit, "the disk is too slow"};
  if (accepted_bytes_ + size > block.limit)
    return {Code::kLimit, "the profile's size limit is reached"};
  waiting_bytes_ += size;
  accepted_bytes_ += size;
  return {};
}

Status ArchiveWriter::PutBlock(Block block, Stored stored) {
  const size_t size = BytesOf(block);
  SONDE_RETURN_IF_ERROR(Reserve(block));
  gathered_bytes_ += size;
  const bool hurry = block.hurry;
  gathered_.push_back({std::move(block), std::move(stored), {}});
  if (gathered_bytes_ >= kMaxGathered) {
    EnqueueGathered();
  } else {
    GatherFor(hurry);
  }
  return {};
}

// A block in a hurry takes those with it that have been gathered.
void ArchiveWriter::GatherFor(bool hurry) {
  if (gather_timer_ != 0 && (gather_in_hurry_ || !hurry)) return;
  loop_.Cancel(gather_timer_);
  gather_in_hurry_ = hurry;
  Nanos wait = kGather;
  if (hurry) wait = Idle() ? 0 : kGatherInHurry;
  gather_timer_ = loop_.After(wait, [this] {
    gather_timer_ = 0;
    EnqueueGathered();
  });
}

void ArchiveWriter::PutState(std::string state, Stored stored) {
  EnqueueGathered();
  Enqueue([this, state = std::move(state), stored = std::move(stored)] {
    Status status = Open();
    if (status.ok()) {
      status = live_->PutState(state);
      Note(status);
    }
    loop_.Post([stored, status] { stored(status); });
  });
}

void ArchiveWriter::EnqueueGathered() {
  loop_.Cancel(std::exchange(gather_timer_, 0));
  if (gathered_.empty()) return;
  gathered_bytes_ = 0;
  auto batch = std::make_shared<Batch>(std::exchange(gathered_, {}));
  Enqueue([this, batch] {
    Write(*batch);
    loop_.Post([batch, on_stored = on_stored_] {
      for (const Gathered& one : *batch) one.stored(one.status);
      if (on_stored) on_stored();
    });
  });
}

// Blocks that wait here came first. The others follow once they are stored: they may replace them.
void ArchiveWriter::Write(Batch& batch) {
  if (!kept_.empty()) {
    Batch kept = std::exchange(kept_, {});
    kept_bytes_ = 0;
    WriteNow(kept);
    KeepForLater(kept);
  }
  if (kept_.empty()) {
    WriteNow(batch);
  } else {
    // The last of those that waited may have been written, and one before it not.
    Status why = failure();
    if (why.ok()) why = {Code::kUnavailable, "what came before it is not stored yet"};
    for (Gathered& one : batch) one.status = why;
  }
  uint64_t waited = 0;
  for (const Gathered& one : batch) waited += BytesOf(one.block);
  {
    const std::lock_guard lock(mutex_);
    waiting_bytes_ -= waited;
  }
  KeepForLater(batch);
}

void ArchiveWriter::WriteNow(Batch& batch) {
  const Status open = Open();
  std::vector<LiveArchive::BlockWrite> writes;
  if (open.ok()) {
    writes.reserve(batch.size());
    for (const Gathered& one : batch) {
      const Block& block = one.block;
      writes.push_back({block.key, block.first, block.schema_id, block.schema.get(), *block.bytes,
                        0, Status(), block.joined});
    }
    live_->ReplaceBlocks(writes);
  }
  uint64_t freed = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i].status = open.ok() ? writes[i].status : open;
    if (!open.ok()) continue;
    if (batch[i].status.ok() || IsOfTheDisk(batch[i].status)) Note(batch[i].status);
    if (batch[i].status.ok()) freed += writes[i].replaced;
  }
  const std::lock_guard lock(mutex_);
  accepted_bytes_ -= std::min(accepted_bytes_, freed);
}

void ArchiveWriter::KeepForLater(Batch& batch) {
  uint64_t freed = 0;
  uint64_t lost = 0;
  for (Gathered& one : batch) {
    const Block& block = one.block;
    if (one.status.ok()) continue;
    if (!block.keep || !IsOfTheDisk(one.status) || make_ == nullptr) {
      freed += BytesOf(block);
      continue;
    }
    std::erase_if(kept_, [&](const Gathered& before) {
      const BlockKey& key = before.block.key;
      const bool replaced = key.node == block.key.node && key.group == block.key.group &&
                            key.sequence >= block.first && key.sequence <= block.key.sequence;
      if (replaced) freed += BytesOf(before.block);
      if (replaced) kept_bytes_ -= BytesOf(before.block);
      return replaced;
    });
    kept_bytes_ += BytesOf(block);
    kept_.push_back({block, nullptr, {}});
  }
  while (kept_bytes_ > kMaxKept) {
    lost += BytesOf(kept_.front().block);
    kept_bytes_ -= BytesOf(kept_.front().block);
    kept_.erase(kept_.begin());
  }
  const std::lock_guard lock(mutex_);
  lost_bytes_ += lost;
  accepted_bytes_ -= std::min(accepted_bytes_, freed + lost);
}

// No pause before this attempt: there is no later one.
void ArchiveWriter::Finish(const Profile& profile, Stored done) {
  EnqueueGathered();
  Enqueue([this, profile = profile, done = std::move(done)]() mutable {
    Status status = Open(/*at_once=*/true);
    if (status.ok()) {
      {
        const std::lock_guard lock(mutex_);
        next_attempt_ = 0;
      }
      Batch none;
      Write(none);
      const uint64_t lost = lost_bytes() + kept_bytes_;
      if (lost > 0) {
        profile.job.notes.push_back(
            fmt::format("{} KiB of the step's series could not be stored: the archive could not be "
                        "written for a time",
                        (lost + 1023) / 1024));
      }
      profile.cost.stored_bytes = StoredBytes(live_->content_bytes(), profile);
      for (int tries = 0; tries < kFinishTries; ++tries) {
        status = live_->PutProfile(profile);
        if (status.ok()) status = live_->Finish();
        if (status.ok()) break;
      }
      live_path_ = live_->path();
      Note(status);
      const std::lock_guard lock(mutex_);
      if (status.ok()) profile_bytes_ = profile.cost.stored_bytes;
    }
    live_.reset();
    make_ = nullptr;
    loop_.Post([done, status] { done(status); });
  });
}

void ArchiveWriter::WhenIdle(std::function<void()> then) {
  EnqueueGathered();
  Enqueue([this, then = std::move(then)] { loop_.Post(then); });
}

void ArchiveWriter::Ingest() {
  Enqueue([this] {
    if (live_path_.empty()) return;
    const Status status = IngestLive(archive_, live_path_, 0, &limits_);
    // Locked is no failure: whoever opens the archive next ingests it.
    if (!status.ok()) log::Info("profile stays in {}: {}", live_path_, status.message());
  });
}

}  // namespace sonde::head
