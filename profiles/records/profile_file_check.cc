// Checks the records of a profile's file; see profile_file.h.
#include <fmt/core.h>

#include <string>

#include "profiles/model/parts.h"
#include "profiles/records/keys.h"
#include "profiles/records/profile_file.h"
#include "series/block/block.h"

namespace sonde {
namespace {

constexpr size_t kMaxGroup = 64;
constexpr std::string_view kOrder = "kdpqxsb";  // schemas may come among blocks

Status WrongFile(std::string_view why) {
  return {Code::kCorrupt, fmt::format("the file holds no whole profile: {}", why)};
}

}  // namespace

Status ProfileFileCheck::Add(const FileRecord& record) {
  const auto kind = static_cast<char>(record.kind);
  const size_t place = kOrder.find(kind);
  const size_t before = stage_ == 0 ? 0 : kOrder.find(stage_);
  const bool first = stage_ == 0;
  if (place == std::string_view::npos || first != (kind == 'k') ||
      (place < before && !(kind == 's' && stage_ == 'b')) ||
      (kind == stage_ && (kind == 'd' || kind == 'p'))) {
    return WrongFile(fmt::format("a record of kind {} is out of place", static_cast<int>(kind)));
  }
  if (stage_ != 'b' || kind != 's') stage_ = kind;
  switch (record.kind) {
    case FileRecordKind::kKey:
      return AddKey(record);
    case FileRecordKind::kDescription:
    case FileRecordKind::kProfile:
      return AddText(record);
    case FileRecordKind::kPart:
      return AddPart(record);
    case FileRecordKind::kOther:
      return AddOther(record);
    case FileRecordKind::kSchema: {
      const auto schema = Schema::Decode(record.bytes);
      if (!schema.ok()) return schema.status();
      schemas_[(*schema)->id()] = (*schema)->size();
      return {};
    }
    default:
      return AddBlock(record);
  }
}

Status ProfileFileCheck::AddKey(const FileRecord& record) {
  const auto job = keys::DescribeKey(record.bytes);
  if (!job || keys::ProfileKey(*job) != record.bytes) return WrongFile("its key is none");
  key_ = record.bytes;
  return {};
}

Status ProfileFileCheck::AddText(const FileRecord& record) {
  JobDescription job;
  if (record.kind == FileRecordKind::kDescription) {
    auto read = DescriptionFromJson(record.bytes);
    if (!read.ok()) return read.status();
    job_ = job = *std::move(read);
  } else {
    auto read = ProfileFromJson(record.bytes);
    if (!read.ok()) return read.status();
    job = read->job;
    profile_ = *std::move(read);
  }
  if (keys::ProfileKey(job) != key_) return WrongFile("its parts are of different steps");
  return {};
}

Status ProfileFileCheck::AddPart(const FileRecord& record) {
  const bool named = !record.part.empty() && record.part.size() <= kMaxPartId &&
                     record.part.find('\0') == std::string::npos;
  if (!named || !parts_.emplace(record.part, true).second)
    return WrongFile("a part's name is none");
  const auto read = ProfileFromJson(record.bytes);
  if (!read.ok()) return read.status();
  if (keys::ProfileKey(read->job) != key_) return WrongFile("its parts are of different steps");
  return {};
}

// Nothing is known but where it belongs.
Status ProfileFileCheck::AddOther(const FileRecord& record) {
  std::string at = keys::Other(record.other, key_, record.part);
  const bool theirs = !keys::IsKnownKind(record.other) && record.other != 0;
  if (!theirs || at <= last_other_) return WrongFile("its records of a later version are none");
  last_other_ = std::move(at);
  return {};
}

Status ProfileFileCheck::AddBlock(const FileRecord& record) {
  const std::string& group = record.block.group;
  if (group.size() > kMaxGroup || group.find('\0') != std::string::npos) {
    return WrongFile("a block's group has no short name");
  }
  std::string at = keys::Block(key_, record.block);
  if (at <= last_block_) return WrongFile("its blocks are not in order");
  last_block_ = std::move(at);
  const auto block = DecodeBlock(record.bytes);
  if (!block.ok()) return block.status();
  const auto schema = schemas_.find(block->schema_id);
  if (schema == schemas_.end()) return WrongFile("a block's schema is missing");
  if (block->columns() != schema->second) return WrongFile("a block does not fit its schema");
  ++blocks_;
  return {};
}

Status ProfileFileCheck::Finish() const {
  if (key_.empty() || keys::ProfileKey(job_) != key_ || !profile_ || parts_.empty()) {
    return WrongFile("description, profile or parts are missing");
  }
  return {};
}

}  // namespace sonde
