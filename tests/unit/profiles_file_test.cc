// A profile as one file: out of one archive and into another, and what is refused on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "profiles/archive/open_archive.h"
#include "profiles/disk/file_lock.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "profiles/records/profile_file.h"
#include "profiles/upkeep/import.h"
#include "profiles/upkeep/open_db.h"
#include "profiles_fixture.h"

namespace sonde::profiles_file_test {
namespace {

using testing::HasSubstr;

void WriteAll(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Reads a whole file from memory; the records, or why not.
Result<std::vector<FileRecord>> Parse(std::string_view bytes) {
  ProfileFileReader reader([&](char* buffer, size_t size) -> Result<size_t> {
    const size_t n = std::min(size, bytes.size());
    std::copy_n(bytes.data(), n, buffer);
    bytes.remove_prefix(n);
    return n;
  });
  ProfileFileCheck check;
  std::vector<FileRecord> records;
  for (;;) {
    auto record = reader.Next();
    if (!record.ok()) return record.status();
    if (!*record) break;
    SONDE_RETURN_IF_ERROR(check.Add(**record));
    records.push_back(**std::move(record));
  }
  SONDE_RETURN_IF_ERROR(check.Finish());
  return records;
}

std::string Format(const std::vector<FileRecord>& records) {
  std::string bytes;
  ProfileFileWriter writer([&](std::string_view text) {
    bytes += text;
    return Status();
  });
  for (const FileRecord& record : records) EXPECT_TRUE(writer.Write(record).ok());
  EXPECT_TRUE(writer.End().ok());
  return bytes;
}

class ProfileFileTest : public testing::Test {
 protected:
  ProfileFileTest() { std::filesystem::create_directory(path("files")); }
  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }

  // A step whose head was killed and that an acting head went on with: a profile of two parts.
  void RecordStep(const std::string& archive, Nanos start = kTestStart) {
    JobDescription job = TestJob("123", start);
    {
      auto head = LiveArchive::Create(archive, job);
      ASSERT_TRUE(head.ok());
      for (uint32_t node : {0u, 1u}) ASSERT_TRUE(PutNodeBlock(**head, node, 1, 0, 10).ok());
      ASSERT_TRUE(PutReducedBlock(**head, 1, 0, 10).ok());
    }
    auto acting = LiveArchive::Continue(archive, job);
    ASSERT_TRUE(acting.ok());
    ASSERT_TRUE(PutNodeBlock(**acting, 1, 2, 10, 5).ok());
    ASSERT_TRUE(PutReducedBlock(**acting, 2, 8, 7).ok());
    Profile profile;
    profile.job = job;
    profile.job.state = EndState::kCompleted;
    profile.job.end = start + 15 * kSecond;
    profile.moments.phases.push_back({"solve", start + kSecond, start + 3 * kSecond, 0, 2, 2, {}});
    ASSERT_TRUE((*acting)->PutProfile(profile).ok());
    ASSERT_TRUE((*acting)->Finish().ok());
    ASSERT_TRUE(OpenArchive(archive).ok());
  }
  // The file of the one profile in an archive.
  std::string Export(const std::string& archive) {
    const auto opened = Archive::Open(archive);
    const auto entries = (*opened)->List();
    EXPECT_EQ(entries->size(), 1u);
    std::vector<FileRecord> records;
    const auto left_out = (*opened)->ReadRecords(entries->front().key, [&](const FileRecord& r) {
      records.push_back(r);
      return Status();
    });
    EXPECT_TRUE(left_out.ok()) << left_out.status().message();
    return Format(records);
  }
  // Everything in db/.
  static std::map<std::string, std::string> Content(const std::string& archive) {
    std::map<std::string, std::string> content;
    if (!std::filesystem::exists(archive + "/db")) return content;
    const auto db = OpenDb(ArchivePaths(archive));
    const std::unique_ptr<leveldb::Iterator> it((*db)->NewIterator({}));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      content[it->key().ToString()] = it->value().ToString();
    }
    return content;
  }
  Result<Imported> Import(const std::string& archive, std::string_view bytes) {
    WriteAll(path("files/p.sonde"), bytes);
    return ImportProfile(archive, path("files/p.sonde"), 0);
  }

  TempDir dir_;
};

TEST_F(ProfileFileTest, AnotherArchiveHasEveryByteOfIt) {
  RecordStep(path("a"));
  const std::string file = Export(path("a"));
  const auto imported = Import(path("b"), file);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->job.id.ToString(), "123.0");
  EXPECT_EQ(imported->blocks, 5u);
  EXPECT_FALSE(imported->was_there);
  EXPECT_EQ(Content(path("a")), Content(path("b")));
  EXPECT_EQ(Export(path("b")), file);
  const auto parts = Content(path("b"));
  const std::string prefix = keys::Parts(keys::ProfileKey(TestJob()));
  EXPECT_EQ(std::count_if(parts.begin(), parts.end(),
                          [&](const auto& entry) { return entry.first.starts_with(prefix); }),
            2);
}

TEST_F(ProfileFileTest, TheSameAgainChangesNothing) {
  RecordStep(path("a"));
  const std::string file = Export(path("a"));
  ASSERT_TRUE(Import(path("b"), file).ok());
  const auto before = Content(path("b"));
  const auto again = Import(path("b"), file);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(again->was_there);
  EXPECT_EQ(Content(path("b")), before);
}

TEST_F(ProfileFileTest, AnotherRecordOfTheSameStepIsNotOverwritten) {
  RecordStep(path("a"));
  ASSERT_TRUE(Import(path("b"), Export(path("a"))).ok());
  const auto before = Content(path("b"));
  auto records = *Parse(Export(path("a")));
  // One more block, one other, another profile, one part more.
  std::vector<std::vector<FileRecord>> others(4, records);
  FileRecord block = records.back();
  block.block.sequence += 1;
  others[0].push_back(block);
  others[1].back().bytes = records[records.size() - 2].kind == FileRecordKind::kBlock
                               ? records[records.size() - 2].bytes
                               : block.bytes;
  auto profile = *ProfileFromJson(records[2].bytes);
  profile.job.notes.emplace_back("changed");
  others[2][2].bytes = ProfileToJson(profile);
  FileRecord part = records[3];
  part.part = "acting nobody 1 1";
  others[3].insert(others[3].begin() + 3, part);
  for (const auto& other : others) {
    const auto imported = Import(path("b"), Format(other));
    EXPECT_EQ(imported.status().code(), Code::kInvalid);
    EXPECT_THAT(std::string(imported.status().message()), HasSubstr("left as it is"));
    EXPECT_EQ(Content(path("b")), before);
  }
}

TEST_F(ProfileFileTest, OneThatWasKilledHalfwayIsCompleted) {
  RecordStep(path("a"));
  const std::string file = Export(path("a"));
  const auto whole = Content(path("a"));
  std::filesystem::create_directories(path("b"));
  {
    const auto db = OpenDb(ArchivePaths(path("b")));
    const std::string block = keys::Block(keys::ProfileKey(TestJob()), {0, "task", 1});
    ASSERT_TRUE((*db)->Put({}, block, whole.at(block)).ok());
  }
  EXPECT_TRUE(OpenArchive(path("b"))->reader->List()->empty());
  ASSERT_TRUE(Import(path("b"), file).ok());
  EXPECT_EQ(Content(path("b")), whole);
}

TEST_F(ProfileFileTest, BlocksOfAnotherRecordAreNotTakenForItsOwn) {
  RecordStep(path("a"));
  std::filesystem::create_directories(path("b"));
  {
    const auto db = OpenDb(ArchivePaths(path("b")));
    const std::string key = keys::ProfileKey(TestJob());
    const std::string block = Content(path("a")).at(keys::Block(key, {0, "task", 1}));
    ASSERT_TRUE((*db)->Put({}, keys::Block(key, {0, "task", 7}), block).ok());
  }
  EXPECT_EQ(Import(path("b"), Export(path("a"))).status().code(), Code::kInvalid);
  EXPECT_TRUE(OpenArchive(path("b"))->reader->List()->empty());
}

TEST_F(ProfileFileTest, AFileCutShortAnywhereChangesNothing) {
  RecordStep(path("a"));
  const std::string file = Export(path("a"));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(Parse(std::string_view(file).substr(0, size)).ok()) << size;
  }
  for (const size_t size : {size_t{0}, size_t{10}, size_t{16}, file.size() / 2, file.size() - 1}) {
    const auto imported = Import(path("b"), std::string_view(file).substr(0, size));
    EXPECT_THAT(std::string(imported.status().message()), HasSubstr("p.sonde")) << size;
    EXPECT_FALSE(std::filesystem::exists(path("b"))) << size;
  }
  EXPECT_FALSE(Parse(file + "x").ok());
}

TEST_F(ProfileFileTest, EveryFlippedByteIsFound) {
  RecordStep(path("a"));
  const std::string file = Export(path("a"));
  for (size_t at = 0; at < file.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      EXPECT_FALSE(Parse(damaged).ok()) << at;
    }
  }
  std::string damaged = file;
  damaged[file.size() / 2] ^= 1;
  const auto imported = Import(path("b"), damaged);
  EXPECT_EQ(imported.status().code(), Code::kCorrupt);
  EXPECT_THAT(std::string(imported.status().message()), HasSubstr("damaged at byte"));
  EXPECT_FALSE(std::filesystem::exists(path("b")));
}

TEST_F(ProfileFileTest, RecordsThatAreMovedLostOrDoubledAreFound) {
  RecordStep(path("a"));
  const std::string file = Export(path("a"));
  // Records as they lie in the file: a kind, a length, so many bytes and a checksum.
  std::vector<std::string> pieces;
  for (size_t at = 16; at < file.size();) {
    uint32_t size = 0;
    std::memcpy(&size, file.data() + at + 1, sizeof size);
    pieces.push_back(file.substr(at, 9 + size));
    at += 9 + size;
  }
  ASSERT_GT(pieces.size(), 8u);
  const auto joined = [&](const std::vector<std::string>& all) {
    std::string bytes = file.substr(0, 16);
    for (const std::string& piece : all) bytes += piece;
    return bytes;
  };
  ASSERT_TRUE(Parse(joined(pieces)).ok());
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    auto without = pieces;
    without.erase(without.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_FALSE(Parse(joined(without)).ok()) << i;
    auto twice = pieces;
    twice.insert(twice.begin() + static_cast<ptrdiff_t>(i), pieces[i]);
    EXPECT_FALSE(Parse(joined(twice)).ok()) << i;
    auto swapped = pieces;
    std::swap(swapped[i], swapped[i + 1]);
    EXPECT_FALSE(Parse(joined(swapped)).ok()) << i;
  }
}

TEST_F(ProfileFileTest, RecordsThatMakeNoProfileAreRefused) {
  RecordStep(path("a"));
  RecordStep(path("c"), kTestStart + kSecond);
  const auto records = *Parse(Export(path("a")));
  const auto others = *Parse(Export(path("c")));
  const auto at = [&](FileRecordKind kind) {
    return static_cast<size_t>(std::find_if(records.begin(), records.end(),
                                            [&](const auto& r) { return r.kind == kind; }) -
                               records.begin());
  };
  const auto refused = [&](const auto& change) {
    auto changed = records;
    change(changed);
    return Parse(Format(changed)).status().code();
  };
  using enum FileRecordKind;
  for (const FileRecordKind kind : {kKey, kDescription, kProfile, kPart, kSchema, kBlock}) {
    // None of it, or another step's, or nonsense.
    EXPECT_NE(refused([&](auto& r) {
                std::erase_if(r, [&](const auto& one) { return one.kind == kind; });
              }),
              kind == kBlock ? Code::kCorrupt : Code::kOk);
    if (kind != kBlock && kind != kSchema) {
      EXPECT_EQ(refused([&](auto& r) { r[at(kind)] = others[at(kind)]; }), Code::kCorrupt);
    }
    EXPECT_NE(refused([&](auto& r) { r[at(kind)].bytes = "{]"; }), Code::kOk);
  }
  EXPECT_NE(refused([&](auto& r) { r[at(kPart)].part = ""; }), Code::kOk);
  EXPECT_NE(refused([&](auto& r) { r[at(kBlock)].block.group = std::string("a\0b", 3); }),
            Code::kOk);
  EXPECT_NE(refused([&](auto& r) { r[at(kBlock)].block.group = std::string(65, 'g'); }), Code::kOk);
}

TEST_F(ProfileFileTest, ANewerVersionIsRefusedByName) {
  RecordStep(path("a"));
  std::string file = Export(path("a"));
  const std::string version_2(
      "\x89Sonde\r\n\x02\x00\x00\x00"
      "\x11\x2b\x5f\xea",
      16);
  file.replace(0, 16, version_2);
  const Status status = Parse(file).status();
  EXPECT_EQ(status.code(), Code::kUnsupported) << status.message();
  EXPECT_THAT(std::string(status.message()), HasSubstr("use a newer Sonde"));
  EXPECT_THAT(std::string(Parse("PK\x03\x04 something else").status().message()),
              HasSubstr("no profile"));
}

TEST_F(ProfileFileTest, WaitsForNobodyWhoHasTheArchive) {
  RecordStep(path("a"));
  const std::string file = Export(path("a"));
  std::filesystem::create_directories(path("b"));
  auto lock = FileLock::Acquire(ArchivePaths(path("b")).db_lock(), 0);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(Import(path("b"), file).status().code(), Code::kBusy);
  lock->Release();
  EXPECT_TRUE(Import(path("b"), file).ok());
}

TEST_F(ProfileFileTest, AStepThatRunsIsNeitherExportedNorImportedOver) {
  RecordStep(path("a"));
  const std::string file = Export(path("a"));
  const auto live = *LiveArchive::Create(path("b"), TestJob());
  EXPECT_EQ(Import(path("b"), file).status().code(), Code::kBusy);
  const auto archive = *Archive::Open(path("b"));
  const auto records =
      archive->ReadRecords(keys::ProfileKey(TestJob()), [](const FileRecord&) { return Status(); });
  EXPECT_EQ(records.status().code(), Code::kBusy);
  EXPECT_THAT(std::string(records.status().message()), HasSubstr("is running"));
}

TEST_F(ProfileFileTest, ABlockThatRottedInTheArchiveIsLeftOutAndCounted) {
  RecordStep(path("a"));
  const std::string at = keys::Block(keys::ProfileKey(TestJob()), {0, "task", 1});
  {
    const auto db = OpenDb(ArchivePaths(path("a")));
    std::string block;
    ASSERT_TRUE((*db)->Get({}, at, &block).ok());
    block[10] ^= 1;
    ASSERT_TRUE((*db)->Put({}, at, block).ok());
  }
  const auto archive = *Archive::Open(path("a"));
  uint64_t blocks = 0;
  const auto left_out =
      archive->ReadRecords(keys::ProfileKey(TestJob()), [&](const FileRecord& record) {
        blocks += record.kind == FileRecordKind::kBlock ? 1 : 0;
        return Status();
      });
  EXPECT_EQ(*left_out, 1u);
  EXPECT_EQ(blocks, 4u);
}

}  // namespace
}  // namespace sonde::profiles_file_test
