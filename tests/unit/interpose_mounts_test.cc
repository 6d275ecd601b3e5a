// Lines of mountinfo and what becomes of them.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>
#include <string_view>

#include "libclient/io/mounts.h"

namespace sonde::io {
namespace {

bool Parse(std::string_view line, MountLine* mount) {
  return ParseMountLine(line.data(), line.size(), mount);
}

std::string Decode(std::string_view text, size_t room = 129) {
  std::string out(room, 'x');
  DecodeMountText(text.data(), text.size(), out.data(), room);
  return out.c_str();
}

TEST(MountLine, IsTakenApart) {
  for (const char* optional : {"", "shared:1 ", "shared:1 master:2 unbindable "}) {
    const std::string line = "36 35 98:7 /sub /mnt/a\\040b rw,noatime " + std::string(optional) +
                             "- ext4 /dev/root rw,errors=continue";
    MountLine mount;
    ASSERT_TRUE(Parse(line, &mount));
    EXPECT_EQ(mount.id, 36u);
    EXPECT_EQ(mount.device, makedev(98, 7));
    EXPECT_EQ(std::string_view(mount.root, mount.root_size), "/sub");
    EXPECT_EQ(std::string_view(mount.point, mount.point_size), "/mnt/a\\040b");
    EXPECT_EQ(std::string_view(mount.type, mount.type_size), "ext4");
  }
}

TEST(MountLine, CutAnywhereItIsRefused) {
  const std::string line = "36 35 98:7 / /mnt rw - ext4 ";
  MountLine mount;
  for (size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(ParseMountLine(line.data(), size, &mount)) << size;
  }
  EXPECT_TRUE(Parse(line, &mount));
  for (const char* bad : {"x 35 98:7 / / rw - ext4 ", "36 35 98.7 / / rw - ext4 ",
                          "36 35 99999999999999999999:7 / / rw - ext4 "}) {
    EXPECT_FALSE(Parse(bad, &mount)) << bad;
  }
}

TEST(MountText, IsOneThatATagMayHave) {
  EXPECT_EQ(Decode("/a\\040b\\134c"), "/a b\\c");
  EXPECT_EQ(Decode("/a\\011b"), "/a?b");
  EXPECT_EQ(Decode("/caf\xc3\xa9"), "/caf??");
  EXPECT_EQ(Decode("/cut\\04"), "/cut\\04");
  EXPECT_EQ(Decode(""), "?");
  EXPECT_EQ(Decode("/12345", 4), "/12");
}

TEST(FindMount, NamesTheRootAndNothingThatIsNotMounted) {
  struct stat root;
  ASSERT_EQ(stat("/proc", &root), 0);
  char type[33], point[129];
  ASSERT_TRUE(FindMount(root.st_dev, -100, "/proc", type, point));
  EXPECT_STREQ(type, "proc");
  EXPECT_STREQ(point, "/proc");
  EXPECT_FALSE(FindMount(makedev(4000, 4000), -1, "", type, point));
}

}  // namespace
}  // namespace sonde::io
