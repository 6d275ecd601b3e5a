// Which mounts are asked for their space, and which of them may not answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/collect/filesystems/mounted.h"

namespace sonde::collect::collect_mounted_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Who(const Filesystem& filesystem) {
  using enum Filesystem::Asked;
  if (filesystem.asked == kAtOnce) return "";
  return filesystem.asked == kByHelper ? " helper" : " not: " + filesystem.hangs;
}

std::vector<std::string> Points(std::string_view mountinfo, std::string_view allowed = {}) {
  std::vector<std::string> points;
  for (const Filesystem& filesystem : ListFilesystems(mountinfo, allowed)) {
    points.push_back(filesystem.point + Who(filesystem));
  }
  return points;
}

TEST(Mounted, WhatAStepCanFillIsListed) {
  EXPECT_THAT(Points("22 27 0:21 / /proc rw shared:1 - proc proc rw\n"
                     "23 27 0:22 / /sys rw shared:2 - sysfs sysfs rw\n"
                     "24 27 0:6 / /dev rw - devtmpfs devtmpfs rw,size=4k\n"
                     "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw,size=24684092k\n"
                     "26 24 0:24 / /dev/pts rw - devpts devpts rw\n"
                     "27 1 254:0 / / rw,relatime shared:3 master:1 - ext4 /dev/vda rw\n"
                     "28 27 0:25 / /run rw - tmpfs tmpfs rw\n"
                     "29 28 0:26 / /run/user/1000 rw - tmpfs tmpfs rw\n"
                     "30 27 0:27 / /tmp rw - tmpfs tmpfs rw\n"
                     "31 27 0:28 / /home rw - nfs4 server:/home rw,vers=4.2\n"
                     "32 27 0:29 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw\n"
                     "33 27 0:30 / /gpfs rw - gpfs gpfs rw\n"
                     "34 27 0:31 / /data rw - fuse.sshfs user@host: rw\n"
                     "35 27 7:0 / /opt/image ro - squashfs /dev/loop0 ro\n"
                     "36 27 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
                     "37 27 0:33 / /misc rw - autofs auto.misc rw\n"
                     "38 27 8:1 / /odd rw - newfs /dev/sda1 rw\n"
                     "39 27 0:34 / /odder rw - newfs none rw\n"
                     "41 27 0:36 / /image rw - overlay overlay rw,lowerdir=/home/image\n"
                     "40 27 0:35 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw\n"),
              ElementsAre("/dev/shm", "/", "/tmp", "/home helper", "/scratch not: lustre",
                          "/gpfs not: gpfs", "/data not: fuse.sshfs", "/odd not: newfs",
                          "/image not: overlay"));
}

TEST(Mounted, EachFilesystemIsListedOnceWhereAllOfItShows) {
  EXPECT_THAT(Points("1 0 8:1 /sub /a rw - ext4 /dev/sda1 rw\n"
                     "2 0 8:1 / /long/path rw - ext4 /dev/sda1 rw\n"
                     "3 0 8:1 / /path rw - ext4 /dev/sda1 rw\n"
                     "4 0 8:2 /only /b rw - ext4 /dev/sda2 rw\n"
                     "5 0 0:40 /home/u1 /home/u1 rw - nfs server:/home/u1 rw\n"
                     "6 0 0:40 /home/u2 /home/u2 rw - nfs server:/home/u2 rw\n"),
              ElementsAre("/path", "/b", "/home/u1 helper"));
}

TEST(Mounted, WhereAFilesystemCanBeAskedItIs) {
  constexpr std::string_view kMounts =
      "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "2 1 0:50 / /f rw - fuse.sshfs host: rw\n"
      "3 2 0:40 / /f/home rw - nfs server:/home rw\n"
      "4 1 0:40 /alice /home/alice rw - nfs server:/home rw\n"
      "5 2 8:2 / /f/disk rw - xfs /dev/sdb rw\n"
      "6 1 8:2 /sub /srv/longer/path rw - xfs /dev/sdb rw\n";
  EXPECT_THAT(Points(kMounts),
              ElementsAre("/", "/f not: fuse.sshfs", "/home/alice helper", "/srv/longer/path"));
}

TEST(Mounted, WhatIsMountedLaterHidesWhatWasThere) {
  const auto listed = ListFilesystems(
      "1 0 8:1 / /mnt rw - ext4 /dev/sda1 rw\n"
      "2 1 0:41 / /mnt rw - nfs server:/x rw\n"
      "3 0 0:1 / / rw - rootfs rootfs rw\n"
      "4 3 8:3 / / rw - xfs /dev/sda3 rw\n");
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0], (Filesystem{"/mnt", "nfs", "0:41", Filesystem::Asked::kByHelper}));
  EXPECT_EQ(listed[1], (Filesystem{"/", "xfs", "8:3"}));
}

TEST(Mounted, ALocalFilesystemBelowAServersPathMayNotAnswer) {
  EXPECT_THAT(Points("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
                     "2 1 0:41 / /home rw - nfs server:/x rw\n"
                     "3 2 0:42 / /home/u/tmp rw - tmpfs tmpfs rw\n"
                     "4 1 0:43 / /homes rw - tmpfs tmpfs rw\n"
                     "5 1 0:44 / /net rw - autofs auto.net rw\n"
                     "6 5 8:2 / /net/disk rw - xfs /dev/sdb rw\n"),
              ElementsAre("/", "/home helper", "/home/u/tmp helper", "/homes", "/net/disk helper"));
}

TEST(Mounted, WhatLiesBelowAFilesystemThatMayHangIsNotAsked) {
  constexpr std::string_view kMounts =
      "1 0 0:30 / / rw - overlay overlay rw\n"
      "2 1 0:41 / /l rw - lustre a@tcp:/l rw\n"
      "3 2 0:42 / /l/tmp rw - tmpfs tmpfs rw\n"
      "4 2 0:43 / /l/home rw - nfs server:/x rw\n"
      "5 1 0:44 / /home rw - nfs server:/y rw\n"
      "6 1 0:45 / /sw rw - fuse.squashfuse image rw\n"
      "7 6 0:46 / /sw/tmp rw - tmpfs tmpfs rw\n"
      "8 1 7:0 / /image ro - squashfs /dev/loop0 ro\n"
      "9 8 0:47 / /image/tmp rw - tmpfs tmpfs rw\n";
  EXPECT_THAT(Points(kMounts), ElementsAre("/ not: overlay", "/l not: lustre", "/l/tmp not: lustre",
                                           "/l/home not: lustre", "/home helper",
                                           "/sw/tmp not: fuse.squashfuse", "/image/tmp"))
      << "the root is on every path, that of a daemon's own program too";
}

TEST(Mounted, TheSiteMayHaveMoreAsked) {
  constexpr std::string_view kMounts =
      "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "2 1 0:41 / /l rw - lustre a@tcp:/l rw\n"
      "3 2 0:42 / /l/tmp rw - tmpfs tmpfs rw\n"
      "4 1 0:43 / /g rw - gpfs gpfs rw\n"
      "5 1 0:44 / /f rw - fuse.sshfs host: rw\n"
      "6 1 0:45 / /p rw - fuse.pfs pfs rw\n";
  const auto with = [&](std::string_view allowed) { return Points(kMounts, allowed); };
  EXPECT_THAT(with("lustre"), ElementsAre("/", "/l helper", "/l/tmp helper", "/g not: gpfs",
                                          "/f not: fuse.sshfs", "/p not: fuse.pfs"));
  EXPECT_THAT(with("gpfs , fuse.p*"), ElementsAre("/", "/l not: lustre", "/l/tmp not: lustre",
                                                  "/g helper", "/f not: fuse.sshfs", "/p helper"));
  EXPECT_THAT(with("lustr,lustrex,fuse"), with(""));
}

TEST(Mounted, LinesThatAreNoneArePassedOver) {
  EXPECT_THAT(Points(""), IsEmpty());
  EXPECT_THAT(Points(" - \n\n - ext4\n1 2 3 - ext4 /dev/sda rw\n1 2 8:1 / - ext4\n"
                     "1 2 8:1 relative /x rw - ext4 /dev/sda rw\n"
                     "1 2 8:2 / /with\\040blank rw - ext4 /dev/sdb rw\n1 2 8:3 / /cut rw - ext4"),
              ElementsAre("/with blank"));
}

}  // namespace
}  // namespace sonde::collect::collect_mounted_test
