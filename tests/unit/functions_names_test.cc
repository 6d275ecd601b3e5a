// How libsonde_functions finds a function's name: in an ELF file that may be damaged, by a line of
// /proc/self/maps, and what becomes of it in a tag.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/names.h"
#include "core/text/tag_text.h"
#include "libclient/functions/elf_symbols.h"
#include "libclient/functions/mappings.h"
#include "tests/unit/functions_elf.h"

namespace sonde::functions {
namespace {

// A file that is read as the library reads one.
class ElfFile {
 public:
  explicit ElfFile(std::string_view bytes) : fd_(memfd_create("elf", MFD_CLOEXEC)) {
    EXPECT_EQ(write(fd_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(index_.Read(fd_));
  }
  ~ElfFile() {
    index_.Clear();
    close(fd_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  std::string Find(uint64_t address) const {
    char room[FunctionIndex::kLongestName];
    return std::string(index_.Find(fd_, address, room));
  }
  size_t size() const { return index_.size(); }
  int fd() const { return fd_; }

 private:
  int fd_;
  FunctionIndex index_;
};

std::string FindFunction(std::string_view bytes, uint64_t address) {
  return ElfFile(bytes).Find(address);
}

TEST(ElfSymbols, StaticFunctionsAreInTheFullTable) {
  const std::string file =
      TestElf({{"main", 0x1100}, {"hidden", 0x1200, STB_LOCAL}, {"datum", 0x1300, 1, STT_OBJECT}},
              {{"main", 0x1100}, {"exported", 0x1400}});
  EXPECT_EQ(FindFunction(file, 0x1100), "main");
  EXPECT_EQ(FindFunction(file, 0x1200), "hidden");
  EXPECT_EQ(FindFunction(file, 0x1300), "") << "no function";
  EXPECT_EQ(FindFunction(file, 0x1400), "exported");
  EXPECT_EQ(FindFunction(file, 0x1101), "") << "no function begins there";
}

TEST(ElfSymbols, AStrippedFileHasThoseThatOthersUse) {
  const std::string file = TestElf({}, {{"exported", 0x1400}});
  EXPECT_EQ(FindFunction(file, 0x1400), "exported");
  EXPECT_EQ(FindFunction(TestElf({}), 0x1400), "");
}

TEST(ElfSymbols, OfSeveralNamesTheOneThatOthersUse) {
  const std::string file = TestElf({{"local", 0x1100, STB_LOCAL},
                                    {"weak", 0x1100, STB_WEAK},
                                    {"global", 0x1100},
                                    {"another", 0x1100}});
  EXPECT_EQ(FindFunction(file, 0x1100), "global");
}

// Linkers hide either, and their order is any.
TEST(ElfSymbols, OfAConstructorsNamesThatOfABase) {
  const std::string file = TestElf({{"_ZN1AC1Ev", 0x1100, STB_WEAK},
                                    {"_ZN1AC2Ev", 0x1100, STB_LOCAL},
                                    {"_a", 0x1100, STB_LOCAL},
                                    {"_ZN1AD2Ev", 0x1300, STB_WEAK},
                                    {"_ZN1AD1Ev", 0x1300, STB_WEAK}});
  EXPECT_EQ(FindFunction(file, 0x1100), "_ZN1AC2Ev");
  EXPECT_EQ(FindFunction(file, 0x1300), "_ZN1AD2Ev");
}

TEST(ElfSymbols, OfEqualNamesTheShortestAndThenTheFirst) {
  const std::string file = TestElf({{"read_it", 0x1100},
                                    {"read_2", 0x1100},
                                    {"read_1", 0x1100},
                                    {"r", 0x1100, STB_LOCAL},
                                    {"", 0x1200},
                                    {"weak", 0x1200, STB_WEAK}});
  EXPECT_EQ(FindFunction(file, 0x1100), "read_1");
  EXPECT_EQ(FindFunction(file, 0x1200), "weak") << "one without a name has none to give";
}

TEST(ElfSymbols, OfMany) {
  std::vector<std::string> names;
  std::vector<TestSymbol> symbols;
  std::mt19937 random(1);
  for (unsigned i = 0; i < 5000; ++i) names.push_back("function_" + std::to_string(i));
  for (unsigned i = 0; i < 5000; ++i)
    symbols.push_back({names[i].c_str(), 0x1100 + 0x10001ull * i});
  std::shuffle(symbols.begin(), symbols.end(), random);
  const ElfFile file(TestElf(symbols));
  EXPECT_EQ(file.size(), 5000u);
  for (unsigned i = 0; i < 5000; ++i) EXPECT_EQ(file.Find(0x1100 + 0x10001ull * i), names[i]);
  EXPECT_EQ(file.Find(0x1100 + 0x10001ull * 17 + 1), "");
}

TEST(ElfSymbols, FarFromItsFirstSegmentThereIsNone) {
  EXPECT_EQ(FindFunction(TestElf({{"far", 0x1100 + (uint64_t{1} << 32)}}), 0x1100), "");
  EXPECT_EQ(FindFunction(TestElf({{"before", 0x1100}}, {}, 0x400000), 0x1100), "");
}

// Where a program at a fixed address takes the address of a library's function.
TEST(ElfSymbols, TheProgramsEntryPointOfALibrarysFunctionHasItsName) {
  const std::string file =
      TestElf({{"of_library", 0x401030, STB_GLOBAL, STT_FUNC, SHN_UNDEF}}, {}, 0x400000);
  EXPECT_EQ(FindFunction(file, 0x401030), "of_library");
}

TEST(ElfSymbols, APlaceInTheFileHasAnAddress) {
  const std::string file = TestElf({{"main", 0x401100}}, {}, 0x400000);
  uint64_t address = 0;
  ASSERT_TRUE(FindAddress(file, 0x1100, &address));
  EXPECT_EQ(address, 0x401100u);
  EXPECT_FALSE(FindAddress(file, 0x100, &address)) << "no code";
  EXPECT_FALSE(FindAddress(file, 0x2000, &address)) << "behind the code";
}

TEST(ElfSymbols, OnesOwnProgramIsRead) {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(in)), {});
  const auto address = reinterpret_cast<uintptr_t>(&FindMapping);
  Room room;
  Mapping mapping;
  std::string_view beginning;
  ASSERT_TRUE(FindMapping(address, &room, &mapping, &beginning));
  EXPECT_TRUE(beginning.starts_with("\177ELF"));
  uint64_t in_file = 0;
  ASSERT_TRUE(FindAddress(file, address - mapping.begin + mapping.offset, &in_file));
  EXPECT_NE(FindFunction(file, in_file).find("FindMapping"), std::string::npos);
}

void LookAround(std::string_view bytes) {
  const ElfFile file(bytes);
  for (const uint64_t at : {uint64_t{0}, uint64_t{0x1100}, uint64_t{0x1400}, UINT64_MAX}) {
    uint64_t address = 0;
    FindAddress(bytes, at, &address);
    EXPECT_NE(bytes.find(file.Find(at)), std::string_view::npos);
  }
}

TEST(ElfSymbols, NothingIsReadOutsideOfADamagedFile) {
  const std::string whole = TestElf({{"main", 0x1100}}, {{"exported", 0x1400}});
  // On the heap and to size, so that a sanitizer sees a step outside.
  for (size_t size = 0; size <= whole.size(); ++size) {
    LookAround(std::string(whole.data(), size));
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 4; ++i) {
      // Half of it in the headers, the rest in the tables.
      const size_t at =
          random() % 2 == 0 ? random() % 176 : 0x2000 + random() % (whole.size() - 0x2000);
      damaged[at] = static_cast<char>(random() % 2 == 0 ? 0xff : random());
    }
    LookAround(damaged);
  }
}

TEST(ElfSymbols, OtherFilesHaveNone) {
  std::string file = TestElf({{"main", 0x1100}});
  file[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(FindFunction(file, 0x1100), "");
  file = TestElf({{"main", 0x1100}});
  file[EI_DATA] = ELFDATA2MSB;
  EXPECT_EQ(FindFunction(file, 0x1100), "");
  EXPECT_EQ(FindFunction("#!/bin/sh\nexec true\n", 0x1100), "");
}

bool Parse(std::string_view line, Mapping* mapping) {
  return ParseMapping(line.data(), line.size(), mapping);
}

TEST(Mapping, ALineIsTakenApart) {
  Mapping mapping;
  ASSERT_TRUE(
      Parse("7f0a12345000-7f0a12346000 r-xp 0001a000 fe:01 4711      /usr/lib/a b.so", &mapping));
  EXPECT_EQ(mapping.begin, 0x7f0a12345000u);
  EXPECT_EQ(mapping.end, 0x7f0a12346000u);
  EXPECT_EQ(mapping.offset, 0x1a000u);
  EXPECT_EQ(mapping.inode, 4711u);
  EXPECT_TRUE(mapping.readable);
  EXPECT_EQ(std::string_view(mapping.path, mapping.path_size), "/usr/lib/a b.so");
  ASSERT_TRUE(Parse("7f0a12345000-7f0a12346000 --xp 00000000 00:00 0 ", &mapping));
  EXPECT_EQ(mapping.inode, 0u);
  EXPECT_EQ(mapping.path_size, 0u);
  EXPECT_FALSE(mapping.readable);
}

TEST(Mapping, CutAnywhereItIsRefusedOrHasLess) {
  const std::string line = "7f0a12345000-7f0a12346000 r-xp 0001a000 fe:01 4711      /lib/a.so";
  for (size_t size = 0; size < line.size(); ++size) {
    const std::string cut(line.data(), size);
    Mapping mapping;
    if (!Parse(cut, &mapping)) continue;
    EXPECT_GE(mapping.path, cut.data());
    EXPECT_LE(mapping.path + mapping.path_size, cut.data() + cut.size());
  }
  Mapping mapping;
  EXPECT_FALSE(Parse("ABC-7f0a12346000 r-xp 0001a000 fe:01 4711 /lib/a.so", &mapping));
}

std::string InTag(std::string_view text) {
  TagText out;
  PutTagText(text, out);
  return out;
}

TEST(TagText, IsWhatATagMayHave) {
  EXPECT_EQ(InTag("solve<double>(int)"), "solve<double>(int)");
  EXPECT_EQ(InTag("größe"), "größe");
  EXPECT_EQ(InTag("a\nb\xff\x7f"), "a?b??");
  EXPECT_EQ(InTag(""), "?");
  EXPECT_EQ(InTag(std::string(128, 'x')), std::string(128, 'x'));
}

TEST(TagText, LongOnesAreCutBetweenCharactersAndStayDistinct) {
  const std::string one = InTag(std::string(200, 'x') + "1"),
                    other = InTag(std::string(200, 'x') + "2");
  EXPECT_EQ(one.size(), 128u);
  EXPECT_EQ(one.substr(0, 120), other.substr(0, 120));
  EXPECT_NE(one, other);
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "ü";
  EXPECT_TRUE(names::IsTagValue(InTag(umlauts)));
  EXPECT_TRUE(names::IsTagValue(InTag("x" + umlauts)));
}

TEST(TagText, APlaceInAFile) {
  TagText out;
  PutPlace("libm.so.6", 0x1f00, out);
  EXPECT_STREQ(out, "libm.so.6+0x1f00");
  PutPlace(std::string(300, 'x'), UINT64_MAX, out);
  EXPECT_TRUE(names::IsTagValue(out));
  EXPECT_TRUE(std::string_view(out).ends_with("+0xffffffffffffffff"));
}

}  // namespace
}  // namespace sonde::functions
