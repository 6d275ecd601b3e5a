#include "daemon/head/archive_writer.h"

#include <algorithm>

#include "core/log.h"

namespace sonde::head {
namespace {

template <typename B>
size_t BytesOf(const B& block) {
  return block.bytes->size() + (block.schema == nullptr ? 0 : block.schema->encoded().size());
}

}  // namespace

ArchiveWriter::ArchiveWriter(Loop& loop, std::string archive, const Retention& limits)
    : loop_(loop), archive_(std::move(archive)), limits_(limits), thread_([this] { Work(); }) {}

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
  std::unique_lock lock(mutex_);
  while (true) {
    ready_.wait(lock, [this] { return stop_ || !orders_.empty(); });
    if (orders_.empty()) return;
    const Order order = std::move(orders_.front());
    orders_.pop_front();
    lock.unlock();
    order();
    lock.lock();
  }
}

void ArchiveWriter::Keep(const Status& status) {
  if (status.ok()) return;
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return;
  log::Error("archive {}: {}", archive_, status.message());
  failure_ = status;
}

Status ArchiveWriter::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

uint64_t ArchiveWriter::stored_bytes() const {
  const std::lock_guard lock(mutex_);
  return stored_bytes_;
}

void ArchiveWriter::Create(const JobDescription& job) {
  Enqueue([this, job] { Open(LiveArchive::Create(archive_, job)); });
}

void ArchiveWriter::Continue(const JobDescription& job) {
  Enqueue([this, job] { Open(LiveArchive::Continue(archive_, job)); });
}

void ArchiveWriter::Open(Result<std::unique_ptr<LiveArchive>> live) {
  if (!live.ok()) return Keep(live.status());
  live_ = *std::move(live);
  live_path_ = live_->path();
}

void ArchiveWriter::PutDescription(const JobDescription& job) {
  Enqueue([this, job] {
    if (live_ != nullptr) Keep(live_->PutDescription(job));
  });
}

void ArchiveWriter::PutMoments(const JobDescription& job, StepMoments moments) {
  Enqueue([this, job, moments = std::move(moments)] {
    if (live_ != nullptr) Keep(live_->PutMoments(job, moments));
  });
}

void ArchiveWriter::PutEndpoint(std::string host, uint16_t port, std::string token) {
  Enqueue([this, host = std::move(host), port, token = std::move(token)] {
    if (live_ != nullptr) Keep(live_->PutEndpoint(host, port, token));
  });
}

Status ArchiveWriter::Reserve(size_t size, uint64_t limit) {
  const std::lock_guard lock(mutex_);
  if (!failure_.ok()) return failure_;
  if (waiting_bytes_ + size > kMaxWaiting) return {Code::kLimit, "the disk is too slow"};
  if (stored_bytes_ + size > limit) return {Code::kLimit, "the profile's size limit is reached"};
  waiting_bytes_ += size;
  stored_bytes_ += size;
  return {};
}

Status ArchiveWriter::PutBlock(Block block, Stored stored) {
  const size_t size = BytesOf(block);
  SONDE_RETURN_IF_ERROR(Reserve(size, block.limit));
  gathered_bytes_ += size;
  gathered_.push_back({std::move(block), std::move(stored), {}});
  if (gathered_bytes_ >= kMaxGathered) {
    EnqueueGathered();
  } else if (gather_timer_ == 0) {
    gather_timer_ = loop_.After(kGather, [this] {
      gather_timer_ = 0;
      EnqueueGathered();
    });
  }
  return {};
}

void ArchiveWriter::PutState(std::string state, Stored stored) {
  EnqueueGathered();
  Enqueue([this, state = std::move(state), stored = std::move(stored)] {
    Status status = failure();
    if (live_ != nullptr && status.ok()) {
      status = live_->PutState(state);
      Keep(status);
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

void ArchiveWriter::Write(Batch& batch) {
  Status before = failure();
  std::vector<LiveArchive::BlockWrite> writes;
  if (live_ != nullptr && before.ok()) {
    writes.reserve(batch.size());
    for (const Gathered& one : batch) {
      const Block& block = one.block;
      writes.push_back(
          {block.key, block.first, block.schema_id, block.schema.get(), *block.bytes, 0, Status()});
    }
    live_->ReplaceBlocks(writes);
  } else if (before.ok()) {
    before = {Code::kUnavailable, "the profile is sealed"};
  }
  uint64_t waited = 0;
  uint64_t freed = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    Gathered& one = batch[i];
    one.status = writes.empty() ? before : writes[i].status;
    if (!writes.empty() && one.status.code() != Code::kNotFound) Keep(one.status);
    waited += BytesOf(one.block);
    if (!one.status.ok()) {
      freed += BytesOf(one.block);
    } else if (!writes.empty()) {
      freed += writes[i].replaced;
    }
  }
  const std::lock_guard lock(mutex_);
  waiting_bytes_ -= waited;
  stored_bytes_ -= std::min(stored_bytes_, freed);
}

void ArchiveWriter::Finish(const Profile& profile, Stored done) {
  EnqueueGathered();
  Enqueue([this, profile, done = std::move(done)] {
    if (live_ != nullptr) {
      Keep(live_->PutProfile(profile));
      Keep(live_->Finish());
      live_.reset();
    }
    loop_.Post([done, status = failure()] { done(status); });
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
