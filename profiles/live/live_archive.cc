// The writing side of live/. One LevelDB a step; see docs/archive.md.
//
// Blocks are compressed already, so LevelDB does not try again; its write buffer is the head's cost
// in memory. After a failure the database is opened anew before the next write
// (disk/writable_db.h), and the acknowledged records are looked for in it. A loss is reported once,
// by a failure and in the profile's notes; then schemas and description are stored again.
#include "profiles/live/live_archive.h"

#include <leveldb/db.h>
#include <leveldb/write_batch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "core/log.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/delete_range.h"
#include "profiles/disk/file_lock.h"
#include "profiles/disk/leveldb_read.h"
#include "profiles/disk/writable_db.h"
#include "profiles/live/directory_fence.h"
#include "profiles/live/live_steps.h"
#include "profiles/model/parts.h"
#include "profiles/records/joined_records.h"
#include "profiles/records/keys.h"
#include "profiles/records/stored_bytes.h"

namespace sonde {
namespace {

// It fills as blocks come. With a smaller one, files would be merged into larger ones so often that
// a large step's blocks cost more for that than for all the rest.
constexpr size_t kWriteBuffer = size_t{4} << 20;
constexpr size_t kMaxKey = 200;   // a directory's name has 255 bytes, and suffixes follow
constexpr int kMaxParts = 64;     // writers of one step: its head and acting heads
constexpr size_t kMaxGroup = 64;  // bytes of a group's name

}  // namespace

struct LiveArchive::Rep {
  explicit Rep(const std::string& root) : archive(root) {}

  const ArchivePaths archive;
  LivePaths paths{""};
  std::string key;
  FileLock lock;
  std::unique_ptr<WritableDb> db;     // nullptr after a failure or Finish
  bool made = false;                  // it was open before
  WrittenRecords written;             // by the one that failed
  std::set<uint64_t> schemas;         // stored ones
  std::set<uint64_t> joined_schemas;  // those of joined blocks, stored beside these
  std::map<std::pair<uint32_t, std::string>, uint64_t> sequences;  // the highest of a node's group
  uint64_t content_bytes = 0;
  std::string description;  // the newest, as JSON
  bool described = false;   // and that is known to be stored, as a record and as a file
  std::string writer;
  bool begun = false;  // the format and these two, which each live step has, are stored
  std::string loss;    // "" or a loss that was found
  bool finished = false;
  std::string failure;   // the first since blocks were stored; the lock file has it
  bool gone = false;     // another host has taken the directory
  std::string endpoint;  // "" or what PutEndpoint wrote
  std::string state;     // "" or what PutState wrote

  Status MakeDirectory();
  void Discard();
  // Goes on in a new directory.
  Status Restart();
  // Fails if the directory is gone, and lets go of it, or if that cannot be told.
  Status CheckHere();
  Status PutFile(std::string (LivePaths::*path)() const, std::string_view text);
  // kCorrupt, with the database open, if a record is lost.
  Status OpenDb();
  // Opens it if it is not open or has stopped.
  Status Ready();
  void Drop();
  Status Write(leveldb::WriteBatch& batch);
  Status TryWrite(leveldb::WriteBatch& batch);
  // Of a write; the first failure goes into the lock file.
  Status Heard(const Status& status);
  Status DeleteBlocks(const BlockKey& last, uint64_t first, leveldb::WriteBatch& batch,
                      uint64_t& bytes);
  struct Batch {
    leveldb::WriteBatch batch;
    std::vector<uint64_t> schemas;  // new with this batch
    uint64_t bytes = 0;
    uint64_t replaced = 0;
  };
  Status Prepare(BlockWrite& write, Batch& into);
  Status PrepareJoined(const BlockWrite& write, Batch& into);
  size_t WriteSome(std::span<BlockWrite> writes);
  Status Put(const std::string& at, std::string_view value);
};

// The directory gets its name only when its lock is held and its description is in place, so that
// no process takes it for an abandoned one. Until then nobody else has a name for it: not a process
// with this one's number on another host, nor one before it that was killed.
Status LiveArchive::Rep::MakeDirectory() {
  auto unused = UnusedName(archive, "new", key);
  if (!unused.ok()) return unused.status();
  const LivePaths hidden(*std::move(unused));
  if (::mkdir(hidden.dir.c_str(), 0700) != 0) {
    return ArchiveError("make directory " + hidden.dir, errno);
  }
  const auto fill = [&]() -> Status {
    auto acquired = FileLock::Acquire(hidden.lock(), 0);
    if (!acquired.ok()) return acquired.status();
    lock = std::move(*acquired);
    SONDE_RETURN_IF_ERROR(lock.Write(LockText(HostName(), "")));
    SONDE_RETURN_IF_ERROR(WriteFileAtomically(hidden.description(), description));
    if (!endpoint.empty()) {
      SONDE_RETURN_IF_ERROR(WriteFileAtomically(hidden.endpoint(), endpoint));
    }
    if (!state.empty()) SONDE_RETURN_IF_ERROR(WriteFileAtomically(hidden.state(), state));
    for (int part = 1; part <= kMaxParts; ++part) {
      paths.dir = archive.live() + "/" + key + (part == 1 ? "" : "~" + std::to_string(part));
      if (::rename(hidden.dir.c_str(), paths.dir.c_str()) == 0) return {};
      if (errno != ENOTEMPTY && errno != EEXIST) return ArchiveError("make " + paths.dir, errno);
    }
    return {Code::kLimit, "make " + paths.dir + ": there are too many of this step already"};
  };
  const Status status = fill();
  std::error_code ignored;
  if (!status.ok()) std::filesystem::remove_all(hidden.dir, ignored);
  return status;
}

Status LiveArchive::Rep::CheckHere() {
  const Status taken(Code::kIo, paths.dir + " was taken by another host");
  if (gone) return taken;
  const auto here = lock.IsAt(paths.lock());
  if (!here.ok()) return here.status();
  if (*here) return {};
  log::Warning("archive: another host took {} for abandoned; this goes on in another part",
               paths.dir);
  gone = true;
  db.reset();
  lock.Release();
  return taken;
}

// Of a step that could not be begun, and of which nothing was acknowledged.
void LiveArchive::Rep::Discard() {
  db.reset();
  if (gone) return;
  // Another host may have taken the directory, and the name may be another writer's.
  const auto here = lock.IsAt(paths.lock());
  if (here.ok() && *here) RemoveLive(archive, paths);
}

Status LiveArchive::Rep::Restart() {
  SONDE_RETURN_IF_ERROR(MakeDirectory());
  writer = PartId::Parse(writer).Again().text;
  written = {};
  schemas.clear();
  joined_schemas.clear();
  sequences.clear();
  made = false;
  begun = described = false;
  gone = false;
  return {};
}

Status LiveArchive::Rep::OpenDb() {
  leveldb::Options options;
  auto env = std::make_unique<QuietOpenEnv>(paths.lock(), !made,
                                            std::make_shared<DirectoryFence>(lock, paths.lock()));
  QuietOpenEnv& opening = *env;
  options.create_if_missing = true;
  options.info_log = NullLogger();
  options.compression = leveldb::kNoCompression;
  options.write_buffer_size = kWriteBuffer;
  options.max_open_files = 64;
  auto opened = WritableDb::Open(options, paths.blocks(), std::move(env));
  if (!opened.ok()) return opened.status();
  opening.Opened();
  made = true;
  const Status found = written.FindIn(**opened).Within("open " + paths.blocks() + " again");
  const bool lost = found.code() == Code::kCorrupt;
  if (!found.ok() && !lost) return found;
  written = {};
  db = *std::move(opened);
  if (!lost) return {};
  schemas.clear();
  joined_schemas.clear();
  begun = false;
  if (loss.empty()) loss = found.message();
  return found;
}

Status LiveArchive::Rep::Ready() {
  if (gone) SONDE_RETURN_IF_ERROR(Restart());
  // A failure of LevelDB's own thread is no reason to refuse this write.
  if (db && !db->failure().ok()) Drop();
  if (db) return {};
  // Another writer may have made a directory of this name.
  if (Status here = CheckHere(); !here.ok()) return gone ? Ready() : here;
  return OpenDb();
}

// After a failure.
void LiveArchive::Rep::Drop() {
  WrittenRecords newest = db->TakeWritten();
  newest.AddOlder(std::exchange(written, {}));
  written = std::move(newest);
  db.reset();
  described = false;
}

Status LiveArchive::Rep::Write(leveldb::WriteBatch& batch) {
  if (finished) return {Code::kInvalid, "write to " + paths.dir + ": the profile is finished"};
  return Heard(TryWrite(batch));
}

Status LiveArchive::Rep::Heard(const Status& status) {
  if (!status.ok() && failure.empty() && !gone) {
    failure = status.message();
    static_cast<void>(lock.Write(LockText(HostName(), failure)));
  }
  // A file that is missing says nothing of the block that was to be written (BlockWrite::status).
  if (status.code() == Code::kNotFound) return {Code::kIo, std::string(status.message())};
  return status;
}

Status LiveArchive::Rep::TryWrite(leveldb::WriteBatch& batch) {
  SONDE_RETURN_IF_ERROR(Ready());
  leveldb::WriteBatch all;
  if (!begun) {
    all.Put({keys::kFormatKey.data(), keys::kFormatKey.size()},
            {keys::kFormat.data(), keys::kFormat.size()});
    all.Put(keys::Description(key), description);
    all.Put(keys::Writer(key), writer);
    all.Append(batch);
  }
  const leveldb::Status status = db->Write(leveldb::WriteOptions(), begun ? &batch : &all);
  // Who takes the directory after this look copies the batch.
  const Status here = CheckHere();
  if (!status.ok() && !gone) Drop();
  if (!status.ok()) return FromLevelDb(status, "write to " + paths.blocks());
  SONDE_RETURN_IF_ERROR(here.Within("write to " + paths.blocks()));
  begun = true;
  return {};
}

// Deletes the existing blocks from `first` to `last`. Most blocks are new and alone: then nothing
// is read.
Status LiveArchive::Rep::DeleteBlocks(const BlockKey& last, uint64_t first,
                                      leveldb::WriteBatch& batch, uint64_t& bytes) {
  uint64_t& newest = sequences[{last.node, last.group}];
  const bool is_new = first > newest;
  newest = std::max(newest, last.sequence);
  if (is_new) return {};
  if (!db) return {Code::kInvalid, "write to " + paths.dir + ": the profile is finished"};
  BlockKey at = last;
  at.sequence = first;
  // The data of a deleted block would not come again.
  const auto deleted =
      DeleteRange(*db, keys::Block(key, at), keys::Block(key, last), paths.blocks(), batch);
  if (!deleted.ok()) return deleted.status();
  bytes += *deleted;
  return {};
}

Status LiveArchive::Rep::Put(const std::string& at, std::string_view value) {
  leveldb::WriteBatch batch;
  batch.Put(at, {value.data(), value.size()});
  return Write(batch);
}

Status LiveArchive::Rep::PutFile(std::string (LivePaths::*path)() const, std::string_view text) {
  if (finished) return WriteFileAtomically((paths.*path)(), text);
  // Before and after: the name may be another writer's by then, and what was written may be gone.
  if (const Status here = CheckHere(); !here.ok() && !gone) return here;
  SONDE_RETURN_IF_ERROR(Heard(Ready()));
  const Status put = WriteFileAtomically((paths.*path)(), text);
  if (CheckHere().ok() || !gone) return put;
  return Heard(Ready());  // which writes it
}

LiveArchive::LiveArchive(const std::string& archive) : rep_(std::make_unique<Rep>(archive)) {}
LiveArchive::~LiveArchive() = default;

Result<std::unique_ptr<LiveArchive>> LiveArchive::Open(const std::string& archive,
                                                       const JobDescription& job,
                                                       const PartId& writer) {
  std::unique_ptr<LiveArchive> live(new LiveArchive(archive));
  Rep& rep = *live->rep_;
  rep.key = keys::ProfileKey(job);
  rep.description = DescriptionToJson(job);
  if (rep.key.size() > kMaxKey) {
    return Status(Code::kInvalid, "archive step " + job.id.ToString().substr(0, 64) +
                                      ": names of cluster, job and step are too long");
  }
  SONDE_RETURN_IF_ERROR(PrepareArchive(rep.archive));
  SONDE_RETURN_IF_ERROR(rep.MakeDirectory());
  Status status = rep.OpenDb();
  if (status.ok()) {
    rep.writer = writer.text;
    leveldb::WriteBatch nothing_more;
    status = rep.Write(nothing_more);
  }
  if (status.ok()) return live;
  rep.Discard();
  return status;
}

Status LiveArchive::PutDescription(const JobDescription& job) {
  if (keys::ProfileKey(job) != rep_->key) {
    return {Code::kInvalid,
            "describe " + rep_->paths.dir + ": cluster, job, step and start may not change"};
  }
  Rep& rep = *rep_;
  std::string json = DescriptionToJson(job);
  // That of a large step is megabytes.
  if (rep.described && !rep.finished && json == rep.description) return {};
  rep.described = false;
  rep.description = std::move(json);
  SONDE_RETURN_IF_ERROR(rep.Put(keys::Description(rep.key), rep.description));
  SONDE_RETURN_IF_ERROR(rep.PutFile(&LivePaths::description, rep.description));
  rep.described = rep.db != nullptr;
  return {};
}

Status LiveArchive::PutBlock(const BlockKey& key, const Schema& schema, std::string_view block) {
  BlockWrite write{key, key.sequence, schema.id(), &schema, block, 0, {}};
  ReplaceBlocks({&write, 1});
  return write.status;
}

// Adds one block to a batch.
Status LiveArchive::Rep::Prepare(BlockWrite& write, Batch& into) {
  const std::string& group = write.key.group;
  if (group.size() > kMaxGroup || group.find('\0') != std::string::npos) {
    return {Code::kInvalid,
            "archive a block: group '" + group.substr(0, kMaxGroup) + "' is no short name"};
  }
  const bool new_schema =
      !schemas.contains(write.schema_id) &&
      std::find(into.schemas.begin(), into.schemas.end(), write.schema_id) == into.schemas.end();
  if (new_schema && write.schema == nullptr) {
    return {Code::kNotFound, "archive a block: its schema is not stored"};
  }
  write.replaced = 0;
  SONDE_RETURN_IF_ERROR(DeleteBlocks(write.key, write.first, into.batch, write.replaced));
  if (new_schema) {
    into.batch.Put(keys::Schema(write.schema_id), write.schema->encoded());
    into.schemas.push_back(write.schema_id);
    into.bytes += BytesInDb(write.schema->encoded());
  }
  into.batch.Put(keys::Block(key, write.key), {write.block.data(), write.block.size()});
  into.bytes += write.block.size();
  into.replaced += write.replaced;
  return {};
}

Status LiveArchive::Rep::PrepareJoined(const BlockWrite& write, Batch& into) {
  if (!schemas.contains(write.schema_id) || !db) {
    return {Code::kNotFound, "archive joined blocks: their schema is not stored"};
  }
  const auto joined = ReadJoined(write.block);
  if (!joined.ok()) return joined.status();
  const bool is_new = !joined_schemas.contains(write.schema_id);
  leveldb::WriteBatch batch;  // all or nothing
  const auto bytes = AddJoined(*db, key, write.schema_id, is_new, write.block, batch);
  if (!bytes.ok()) return bytes.status();
  // Thinned blocks stand for finer ones that are stored.
  uint64_t replaced = 0;
  for (const JoinedEntry& entry : joined->entries) {
    SONDE_RETURN_IF_ERROR(
        DeleteBlocks({entry.node, entry.group, entry.sequence}, entry.first, batch, replaced));
  }
  joined_schemas.insert(write.schema_id);
  into.batch.Append(batch);
  into.bytes += *bytes;
  into.replaced += replaced;
  return {};
}

// Until a block needs what the same batch has, and the database not yet: it replaces a block, or is
// joined, when it may replace many and its schema may be new.
size_t LiveArchive::Rep::WriteSome(std::span<BlockWrite> writes) {
  // A loss may include schemas that a block here needs.
  if (const Status ready = finished ? Status() : Heard(Ready()); !ready.ok()) {
    for (BlockWrite& write : writes) write.status = ready;
    return writes.size();
  }
  Batch batch;
  size_t count = 0;
  for (BlockWrite& write : writes) {
    const auto newest = sequences.find({write.key.node, write.key.group});
    const bool replaces = newest != sequences.end() && write.first <= newest->second;
    if (count > 0 && (replaces || write.joined)) break;
    write.status = write.joined ? PrepareJoined(write, batch) : Prepare(write, batch);
    ++count;
  }
  const Status status = Write(batch.batch);
  for (BlockWrite& write : writes.first(count)) {
    if (write.status.ok()) write.status = status;
  }
  if (!status.ok()) {
    joined_schemas.clear();
    return count;
  }
  if (!failure.empty() && lock.Write(LockText(HostName(), "")).ok()) failure.clear();
  schemas.insert(batch.schemas.begin(), batch.schemas.end());
  content_bytes += batch.bytes - std::min(batch.bytes, batch.replaced);
  return count;
}

void LiveArchive::ReplaceBlocks(std::span<BlockWrite> writes) {
  while (!writes.empty()) writes = writes.subspan(rep_->WriteSome(writes));
}

Status LiveArchive::PutMoments(const JobDescription& job, const StepMoments& moments) {
  return rep_->Put(keys::Moments(rep_->key), MomentsToJson(moments, job));
}

Status LiveArchive::PutProfile(const Profile& profile) {
  // A loss that is found only now is reported by the note: there may be no later chance.
  if (!rep_->finished) static_cast<void>(rep_->Ready());
  SONDE_RETURN_IF_ERROR(PutDescription(profile.job));
  if (rep_->loss.empty()) return rep_->Put(keys::Profile(rep_->key), ProfileToJson(profile));
  Profile told = profile;
  told.job.notes.push_back("Some of what was stored of the step was lost when the disk failed (" +
                           rep_->loss + ").");
  return rep_->Put(keys::Profile(rep_->key), ProfileToJson(told));
}

Status LiveArchive::Sync() {
  Rep& rep = *rep_;
  if (rep.finished) return {Code::kIo, "sync " + rep.paths.dir + ": it is not open"};
  SONDE_RETURN_IF_ERROR(rep.Heard(rep.Ready()));
  const Status blocks = SyncDirectory(rep.paths.blocks());
  // Another sync would not report the data that this one has lost: all must be written anew.
  if (!blocks.ok()) {
    rep.db->Stop(blocks);
    rep.Drop();
    return blocks;
  }
  Status names = SyncDirectory(rep.paths.dir);
  if (names.ok()) names = SyncPath(rep.archive.live());
  rep.described &= names.ok();
  return names;
}

Status LiveArchive::PutEndpoint(const Endpoint& endpoint) {
  rep_->endpoint = ToJson(endpoint);
  return rep_->PutFile(&LivePaths::endpoint, rep_->endpoint);
}

Status LiveArchive::PutState(std::string_view state) {
  if (state.size() > kMaxState) return {Code::kLimit, "store a head's state: it is too long"};
  rep_->state = state;
  return rep_->PutFile(&LivePaths::state, state);
}

void LiveArchive::Touch() {
  if (!rep_->finished && rep_->CheckHere().ok()) rep_->lock.Touch();
}

Status LiveArchive::Finish() {
  SONDE_RETURN_IF_ERROR(rep_->Put(keys::Finished(rep_->key), ""));
  if (const Status closed = rep_->db->Close(); !closed.ok()) {
    if (rep_->CheckHere().ok() || !rep_->gone) rep_->Drop();
    return rep_->Heard(closed);
  }
  rep_->finished = true;
  rep_->db.reset();
  // All is in the directory, whoever has taken it meanwhile; the files of its name may be another
  // writer's then.
  if (const auto here = rep_->lock.IsAt(rep_->paths.lock()); here.ok() && *here) {
    ::unlink(rep_->paths.endpoint().c_str());
    ::unlink(rep_->paths.state().c_str());
  }
  // Without a writer's host whoever does not see its lock knows that it has finished.
  const std::string& why = rep_->failure;
  static_cast<void>(rep_->lock.Replace(why.empty() ? "" : LockText("", why)));
  rep_->lock.Release();
  return {};
}

const std::string& LiveArchive::path() const { return rep_->paths.dir; }
uint64_t LiveArchive::content_bytes() const { return rep_->content_bytes; }

}  // namespace sonde
