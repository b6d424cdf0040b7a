// Archives from hosts: those made by tar arrive complete, all others are refused with a line.
#include "launch/tar_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/temp_dir.h"
#include "cluster/tar_files.h"
#include "launch/new_folder.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

namespace fs = std::filesystem;
using lockstep::testing::get_file;
using lockstep::testing::make_tar;
using lockstep::testing::message_of;
using lockstep::testing::tar_block;
using lockstep::testing::TarEntry;
using lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Tar : public ::testing::Test {
 protected:
  /// Unpacks in pieces of `piece` bytes and moves the files to `run`.
  void unpack(const std::string& archive, size_t piece = 1000, launch::TarLimits limits = {}) const {
    launch::NewFolder arriving(run);
    launch::TarReader reader(arriving, limits);
    for (size_t at = 0; at < archive.size(); at += piece) reader.feed(std::string_view(archive).substr(at, piece));
    reader.finish();
    arriving.move_out([](const std::string&) { return true; });
  }
  [[nodiscard]] std::string refused(const std::string& archive, launch::TarLimits limits = {}) const {
    const std::string message = message_of<DataError>([&] { unpack(archive, 1000, limits); });
    EXPECT_THAT(fs::directory_iterator(run), fs::directory_iterator{}) << message;
    return message;
  }
  /// Archive of the folder `from`, made by the machine's tar.
  [[nodiscard]] std::string real_tar(const std::string& options) const {
    const std::string command = "tar -C " + (dir / "from") + " " + options + " -cf " + (dir / "out.tar") + " .";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT(concurrency-mt-unsafe)
    return get_file(dir / "out.tar");
  }
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(dir / path).parent_path());
    std::ofstream(dir / path) << text;
  }
  void SetUp() override { fs::create_directories(run); }

  TempDir dir;
  std::string run = dir / "run";
};

TEST_F(Tar, WhatTarWritesArrivesInEveryFormatAndInPiecesOfAnySize) {
  const std::string deep = std::string(90, 'a') + "/" + std::string(200, 'b') + "/" + std::string(120, 'c');
  put("from/summary.json", "{}");
  put("from/empty", "");
  put("from/worker-1/log", std::string(100'000, 'x'));
  put("from/" + deep, "long");
  fs::create_directories(dir / "from/checkpoints");
  for (const char* format : {"--format=gnu", "--format=posix"}) {
    const std::string archive = real_tar(format);
    for (const size_t piece : {size_t{1}, size_t{512}, size_t{777}, archive.size()}) {
      unpack(archive, piece);
      EXPECT_EQ(get_file(run + "/summary.json"), "{}");
      EXPECT_EQ(get_file(run + "/worker-1/log"), std::string(100'000, 'x'));
      EXPECT_EQ(get_file(run + "/" + deep), "long");
      EXPECT_TRUE(fs::exists(run + "/empty"));
      EXPECT_TRUE(fs::is_directory(run + "/checkpoints"));
      EXPECT_EQ(fs::last_write_time(run + "/empty") <= fs::last_write_time(dir / "from/empty"), true);
      fs::remove_all(run);
      fs::create_directories(run);
    }
  }
}

TEST_F(Tar, WhateverCouldLeaveTheFolderIsRefused) {
  const TarEntry before{"before", "text"};
  const auto with = [&](const TarEntry& entry) { return refused(make_tar({before, entry})); };
  EXPECT_EQ(with({"../x", "y"}), "its archive has '../x', a path that leaves its folder");
  EXPECT_THAT(with({"a/../../x", "y"}), HasSubstr("a path that leaves its folder"));
  EXPECT_THAT(with({"a/..", "", '5'}), HasSubstr("a path that leaves its folder"));
  EXPECT_EQ(with({"/abs", "y"}), "its archive has '/abs', an absolute path");
  EXPECT_EQ(with({"x", "", '2', "/etc"}), "its archive has 'x', a link");
  EXPECT_EQ(with({"x", "", '1', "before"}), "its archive has 'x', a link");
  EXPECT_EQ(with({"x", "", '3'}), "its archive has 'x', a device");
  EXPECT_EQ(with({"x", "", '6'}), "its archive has 'x', a pipe");
  EXPECT_EQ(with({"x", "", 'S'}), "its archive has 'x', a sparse file");
  EXPECT_THAT(with({"x", "", 'K', "y"}), HasSubstr("a link"));
  EXPECT_THAT(with({"x\n\033[2J", "y"}), HasSubstr("control characters"));
  EXPECT_EQ(with({"before", "again"}), "its archive has 'before' twice");
  EXPECT_THAT(with({"before/x", "y"}), HasSubstr("'before' is a file or a link"));
  EXPECT_THAT(refused(make_tar({{"x", "16 path=../../y\n", 'x'}, {"x", "y"}})),
              HasSubstr("a path that leaves its folder"));
  EXPECT_THAT(refused(make_tar({{"x", "17 path=../../y\n", 'x'}, {"x", "y"}})),
              HasSubstr("the attributes of an entry"));
  EXPECT_THAT(refused(make_tar({{"L", "../../y", 'L'}, {"x", "y"}})), HasSubstr("a path that leaves its folder"));
  EXPECT_THAT(refused(make_tar({{"x", "19 linkpath=/etc/x\n", 'x'}, {"x", "y"}})), HasSubstr("a link to '/etc/x'"));
  EXPECT_THAT(with({std::string(30, '.') + "/" + "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q", "y"}), HasSubstr("too deep"));
}

TEST_F(Tar, DamageIsRefused) {
  const std::string archive = make_tar({{"a", "text"}, {"b", std::string(3000, 'x')}});
  for (const size_t size : {size_t{0}, size_t{100}, size_t{512}, size_t{514}, size_t{2000}, archive.size() - 1024}) {
    EXPECT_EQ(refused(archive.substr(0, size)), "its archive is cut off") << size;
  }
  std::string flipped = archive;
  flipped[3] = 'x';
  EXPECT_THAT(refused(flipped), HasSubstr("the checksum of a header is wrong"));
  EXPECT_THAT(refused(archive + tar_block({"c"})), HasSubstr("goes on after its end"));
  EXPECT_THAT(refused(std::string(512, '\0') + archive), HasSubstr("a block of zeros is in its middle"));
  EXPECT_THAT(refused(archive + std::string(3 << 20, '\0')), HasSubstr("goes on after its end"));
  EXPECT_THAT(refused(make_tar({{"a", "text", '0', "", "x"}})), HasSubstr("damaged"));
}

TEST_F(Tar, LimitsHoldBeforeAnyByteArrives) {
  EXPECT_EQ(refused(make_tar({{"a", ""}, {"b", ""}, {"c", ""}}), {2, 100}), "its archive has more than 2 entries");
  EXPECT_EQ(refused(make_tar({{"a", std::string(60, 'x')}, {"b", std::string(60, 'x')}}), {9, 100}),
            "its archive is too large: with 'b' it has more than 100 bytes");
  EXPECT_THAT(refused(tar_block({"a", "", '0', "", "77777777777"}), {9, 100}), HasSubstr("too large"));
  EXPECT_THAT(refused(tar_block({"a", "", '0', "", "\x80" + std::string(11, '\xFF')})), HasSubstr("too large"));
  EXPECT_THAT(refused(tar_block({"a", "", 'x', "", "77777777777"})), HasSubstr("too long"));
}

TEST_F(Tar, AFolderThatIsALinkHereIsNotFollowed) {
  fs::create_directories(dir / "outside");
  fs::create_directory_symlink(dir / "outside", run + "/worker-1");
  EXPECT_THAT(message_of<DataError>([&] {
                unpack(make_tar({{"worker-1/x", "y"}}));
              }),
              HasSubstr("worker-1' is a file or a link"));
  std::ofstream(dir / "target") << "kept";
  fs::create_symlink(dir / "target", run + "/file");
  unpack(make_tar({{"file", "new"}}));
  EXPECT_EQ(get_file(dir / "target"), "kept") << "the link goes, not what it points to";
  EXPECT_EQ(get_file(run + "/file"), "new");
  EXPECT_TRUE(fs::is_empty(dir / "outside"));
}

TEST(NewFolder, NamesTheFolderThatCannotTakeOne) {
  const std::string message = message_of<IoError>([] { const launch::NewFolder folder("/proc"); });
  EXPECT_THAT(message, ::testing::StartsWith("cannot create a folder in /proc: ")) << "no name of its own making";
}

}  // namespace
}  // namespace lockstep::cluster
