// A profile as one file, FILE.sonde: all records that the archive has of it, byte for byte, so that
// another archive can take it in. docs/format.md specifies it. Never to change: files are kept for
// years.
//
// Written and read record by record: one record is in memory, and it is no larger than the bytes
// that were really read. The input is not trusted; ProfileFileReader checks the form and the
// checksums, ProfileFileCheck the contents of the records.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "profiles/model/block_key.h"
#include "profiles/model/profile.h"

namespace sonde {

// Written to disk: never to change.
enum class FileRecordKind : char {
  kKey = 'k',
  kDescription = 'd',
  kProfile = 'p',
  kPart = 'q',
  kOther = 'x',  // a record of a later version
  kSchema = 's',
  kBlock = 'b',
  kEnd = 'e',
};

// One record, unpacked.
struct FileRecord {
  FileRecordKind kind = FileRecordKind::kEnd;
  std::string part;   // kPart: its id; kOther: its name, the part of the key behind the profile
  BlockKey block;     // kBlock: where it belongs
  std::string bytes;  // the key, JSON, an encoded schema or a block
  char other = 0;     // kOther: its kind in the archive
};

class ProfileFileWriter {
 public:
  using Sink = std::function<Status(std::string_view)>;
  explicit ProfileFileWriter(Sink sink) : sink_(std::move(sink)) {}

  // The first call writes the file's head first.
  Status Write(const FileRecord& record);
  // Call it last.
  Status End();
  uint64_t bytes() const { return bytes_; }

 private:
  Status WriteRecord(FileRecordKind kind, std::string_view payload);
  Status Put(std::string_view bytes);

  const Sink sink_;
  uint64_t bytes_ = 0;
  uint32_t records_ = 0;
  uint32_t chain_ = 0;  // checksum of all records' checksums
};

class ProfileFileReader {
 public:
  // Fills as much of the buffer as there are bytes; 0: the end.
  using Source = std::function<Result<size_t>(char* buffer, size_t size)>;
  explicit ProfileFileReader(Source source) : source_(std::move(source)) {}

  // The next record; nullopt after the last one, when the file is known to be whole. kCorrupt says
  // where and what; kUnsupported for a file of a newer Sonde. After a failure reading is over.
  Result<std::optional<FileRecord>> Next();
  uint64_t position() const { return position_; }
  // Of a whole file that was read: differs from that of any other file.
  uint32_t chain() const { return chain_; }

 private:
  Status ReadHead();
  Result<std::string> Take(size_t size, std::string_view what);
  Result<FileRecord> Parse(FileRecordKind kind, std::string_view payload) const;
  Status CheckEnd(std::string_view payload);
  Status Corrupt(std::string_view why) const;

  const Source source_;
  uint64_t position_ = 0;  // of the next record
  uint64_t record_at_ = 0;
  uint32_t records_ = 0;
  uint32_t chain_ = 0;
};

// Checks that a file's records make a profile: each record in its place, of this profile, and
// readable. After the last record Finish says whether one is missing.
class ProfileFileCheck {
 public:
  Status Add(const FileRecord& record);
  Status Finish() const;
  const std::string& key() const { return key_; }
  const JobDescription& job() const { return job_; }
  const std::optional<Profile>& profile() const { return profile_; }
  uint64_t blocks() const { return blocks_; }

 private:
  Status AddKey(const FileRecord& record);
  Status AddText(const FileRecord& record);
  Status AddPart(const FileRecord& record);
  Status AddOther(const FileRecord& record);
  Status AddBlock(const FileRecord& record);

  std::string key_;
  JobDescription job_;
  std::optional<Profile> profile_;
  std::map<std::string, bool> parts_;
  std::map<uint64_t, size_t> schemas_;  // columns of each
  std::string last_other_;              // the key in the archive of the last record of each sort
  std::string last_block_;
  uint64_t blocks_ = 0;
  char stage_ = 0;  // the kind of the previous record
};

}  // namespace sonde
