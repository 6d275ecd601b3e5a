#include "profiles/records/profile_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/bytes.h"
#include "profiles/json/parse.h"
#include "series/block/format.h"
#include "series/block/pack.h"

namespace sonde {
namespace {

// The first byte is no text, and careless transfers change the line ends.
constexpr std::string_view kMagic = "\x89Sonde\r\n";
constexpr uint32_t kFileVersion = 1;
constexpr size_t kHeadSize = 8 + 4 + 4;
constexpr size_t kRecordHead = 1 + 4;
constexpr size_t kChecksum = 4;
// A block may unfold to 64 MiB and is packed already; texts are packed here.
constexpr uint32_t kMaxPayload = 80u << 20;
constexpr size_t kMaxText = size_t{64} << 20;
constexpr size_t kMaxName = 512;
constexpr size_t kPiece = size_t{1} << 20;

using block_format::Crc32c;

std::string_view NameOf(FileRecordKind kind) {
  switch (kind) {
    case FileRecordKind::kKey:
      return "the key";
    case FileRecordKind::kDescription:
      return "the description";
    case FileRecordKind::kProfile:
      return "the profile";
    case FileRecordKind::kPart:
      return "a part";
    case FileRecordKind::kOther:
      return "a record of a later version";
    case FileRecordKind::kSchema:
      return "a schema";
    case FileRecordKind::kBlock:
      return "a block";
    case FileRecordKind::kEnd:
      return "the end";
  }
  return "a record of an unknown kind";
}

bool IsKnownRecord(FileRecordKind kind) {
  return std::string_view("kdpqxsbe").find(static_cast<char>(kind)) != std::string_view::npos;
}

uint32_t Chain(uint32_t chain, uint32_t checksum) {
  std::string both;
  ByteWriter w(both);
  w.Fixed(chain);
  w.Fixed(checksum);
  return Crc32c(both);
}

}  // namespace

Status ProfileFileWriter::Put(std::string_view bytes) {
  bytes_ += bytes.size();
  return sink_(bytes);
}

Status ProfileFileWriter::WriteRecord(FileRecordKind kind, std::string_view payload) {
  if (payload.size() > kMaxPayload) {
    return {Code::kLimit, fmt::format("write {}: it is too large for a file", NameOf(kind))};
  }
  if (bytes_ == 0) {
    std::string head(kMagic);
    ByteWriter w(head);
    w.Fixed(kFileVersion);
    w.Fixed(Crc32c(head));
    SONDE_RETURN_IF_ERROR(Put(head));
  }
  std::string record;
  ByteWriter w(record);
  w.Fixed(static_cast<char>(kind));
  w.Fixed(static_cast<uint32_t>(payload.size()));
  w.Raw(payload);
  const uint32_t checksum = Crc32c(record);
  w.Fixed(checksum);
  chain_ = Chain(chain_, checksum);
  ++records_;
  return Put(record);
}

Status ProfileFileWriter::Write(const FileRecord& record) {
  std::string payload;
  ByteWriter w(payload);
  switch (record.kind) {
    case FileRecordKind::kKey:
      w.Raw(record.bytes);
      break;
    case FileRecordKind::kPart:
      w.Text(record.part);
      w.Raw(Pack(record.bytes));
      break;
    case FileRecordKind::kOther:
      w.Fixed(record.other);
      w.Text(record.part);
      w.Raw(Pack(record.bytes));
      break;
    case FileRecordKind::kBlock:
      w.Fixed(record.block.node);
      w.Fixed(record.block.sequence);
      w.Text(record.block.group);
      w.Raw(record.bytes);
      break;
    default:
      w.Raw(Pack(record.bytes));
  }
  return WriteRecord(record.kind, payload);
}

Status ProfileFileWriter::End() {
  std::string payload;
  ByteWriter w(payload);
  w.Fixed(records_);
  w.Fixed(chain_);
  return WriteRecord(FileRecordKind::kEnd, payload);
}

Status ProfileFileReader::Corrupt(std::string_view why) const {
  return {Code::kCorrupt, fmt::format("the file is damaged at byte {}: {}", record_at_, why)};
}

Result<std::string> ProfileFileReader::Take(size_t size, std::string_view what) {
  std::string bytes;
  while (bytes.size() < size) {
    const size_t had = bytes.size();
    bytes.resize(std::min(size, had + kPiece));
    const Result<size_t> got = source_(bytes.data() + had, bytes.size() - had);
    if (!got.ok()) return got.status();
    bytes.resize(had + std::min(*got, bytes.size() - had));
    position_ += bytes.size() - had;
    if (*got == 0) return Corrupt(fmt::format("it ends within {}", what));
  }
  return bytes;
}

Status ProfileFileReader::ReadHead() {
  const Result<std::string> head = Take(kHeadSize, "its head");
  const bool ours = head.ok() && head->starts_with(kMagic);
  if (!head.ok() && head.status().code() != Code::kCorrupt) return head.status();
  if (!ours) {
    return {Code::kInvalid, "this is no profile that 'sonde export --to FILE.sonde' has written"};
  }
  ByteReader in(std::string_view(*head).substr(kMagic.size()));
  const auto version = in.Fixed<uint32_t>();
  if (in.Fixed<uint32_t>() != Crc32c(std::string_view(*head).substr(0, kHeadSize - kChecksum))) {
    return Corrupt("its head fails its checksum");
  }
  if (version != kFileVersion) {
    return {Code::kUnsupported,
            fmt::format("the file has version {} of the format and this program knows {}; use a "
                        "newer Sonde",
                        version, kFileVersion)};
  }
  return {};
}

Result<FileRecord> ProfileFileReader::Parse(FileRecordKind kind, std::string_view payload) const {
  FileRecord record;
  record.kind = kind;
  ByteReader in(payload);
  if (kind == FileRecordKind::kPart) record.part = in.Text(kMaxName);
  if (kind == FileRecordKind::kOther) {
    record.other = in.Fixed<char>();
    record.part = in.Text(kMaxName);
  }
  if (kind == FileRecordKind::kBlock) {
    record.block.node = in.Fixed<uint32_t>();
    record.block.sequence = in.Fixed<uint64_t>();
    record.block.group = in.Text(kMaxName);
  }
  if (!in.ok()) return Corrupt(fmt::format("{} is cut short", NameOf(kind)));
  const std::string_view rest = in.Raw(in.left());
  if (kind == FileRecordKind::kBlock || kind == FileRecordKind::kKey) {
    record.bytes = rest;
    return record;
  }
  if (!IsKnownRecord(kind)) {
    return Status(Code::kUnsupported,
                  fmt::format("the file has a record of kind {}, which this program does not know; "
                              "use a newer Sonde",
                              static_cast<int>(kind)));
  }
  Result<std::string> plain = Unpack(rest, kMaxText, NameOf(kind));
  if (!plain.ok()) return Corrupt(plain.status().message());
  record.bytes = *std::move(plain);
  return record;
}

Status ProfileFileReader::CheckEnd(std::string_view payload) {
  ByteReader in(payload);
  const auto records = in.Fixed<uint32_t>();
  const auto chain = in.Fixed<uint32_t>();
  if (!in.done() || records != records_ || chain != chain_) {
    return Corrupt("records are missing, or not in the order in which they were written");
  }
  char more = 0;
  const Result<size_t> got = source_(&more, 1);
  if (!got.ok()) return got.status();
  return *got == 0 ? Status() : Corrupt("something follows its end");
}

Result<std::optional<FileRecord>> ProfileFileReader::Next() {
  if (position_ == 0) SONDE_RETURN_IF_ERROR(ReadHead());
  record_at_ = position_;
  const Result<std::string> head = Take(kRecordHead, "a record, before its end");
  if (!head.ok()) return head.status();
  ByteReader in(*head);
  const auto kind = static_cast<FileRecordKind>(in.Fixed<char>());
  const auto size = in.Fixed<uint32_t>();
  if (size > kMaxPayload) return Corrupt("a record is longer than any");
  const Result<std::string> body = Take(size + kChecksum, NameOf(kind));
  if (!body.ok()) return body.status();
  const std::string_view payload = std::string_view(*body).substr(0, size);
  ByteReader tail(std::string_view(*body).substr(size));
  const auto checksum = tail.Fixed<uint32_t>();
  if (checksum != Crc32c(*head + std::string(payload))) {
    return Corrupt(fmt::format("{} fails its checksum", NameOf(kind)));
  }
  if (kind == FileRecordKind::kEnd) {
    SONDE_RETURN_IF_ERROR(CheckEnd(payload));
    return std::optional<FileRecord>();
  }
  chain_ = Chain(chain_, checksum);
  ++records_;
  Result<FileRecord> record = Parse(kind, payload);
  if (!record.ok()) return record.status();
  return std::optional<FileRecord>(*std::move(record));
}

}  // namespace sonde
