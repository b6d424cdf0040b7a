#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "base/temp_dir.h"
#include "lockstep/error.h"
#include "ps/contributions.h"
#include "ps/parameter_shard.h"
#include "ps/shard_support.h"

namespace lockstep::ps {
namespace {

using lockstep::testing::get_file;
using lockstep::testing::message_of;
using lockstep::testing::TempDir;
using ::testing::AllOf;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::numbered_update;
using testing::numbered_values;
using testing::settings_of;
using testing::text_of;
using testing::Undisturbed;

constexpr size_t kCount = 3000;

ParameterShardOptions file_options(const std::string& file, Durability durability = Durability::process) {
  ParameterShardOptions options;
  options.optimizer = settings_of(optim::Method::momentum);
  options.parameters = kCount;
  options.durability = durability;
  options.file = file;
  options.identity = 42;
  return options;
}

View apply_numbered(ParameterShard& shard, uint64_t number) {
  const auto gradient = numbered_values(number, kCount);
  const Contribution one{gradient};
  return shard.apply({&one, 1}, 1, numbered_update(number), bytes_of("update " + std::to_string(number)));
}

/// Makes a file whose newest version is `version`.
void make_state(const ParameterShardOptions& options, uint64_t version) {
  ParameterShard shard(options);
  shard.initialise(0, numbered_values(1000000, kCount), {}, {});
  for (uint64_t i = 0; i < version; ++i) apply_numbered(shard, i);
}

void expect_version(const ParameterShard& shard, uint64_t version) {
  const View view = shard.current();
  EXPECT_EQ(view.version, version);
  Undisturbed expected(settings_of(optim::Method::momentum), kCount);
  expected.advance_to(version);
  EXPECT_TRUE(expected.equals(view));
}

std::string refusal(const ParameterShardOptions& options) {
  return message_of<DataError>([&] { const ParameterShard shard(options); });
}

/// The file's bytes, to be damaged.
class Bytes {
 public:
  explicit Bytes(std::string path) : path_(std::move(path)), bytes_(get_file(path_)) {}
  void save() const {
    lockstep::testing::put_file(path_, {reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size()});
  }
  uint64_t word(size_t at) const {
    uint64_t value = 0;
    std::memcpy(&value, &bytes_.at(at), sizeof(value));
    return value;
  }
  void flip(size_t at) { bytes_.at(at) ^= 0x10; }
  void resize(size_t size) { bytes_.resize(size); }
  [[nodiscard]] size_t size() const { return bytes_.size(); }
  /// Makes the header's checksum valid again.
  void seal_header() {
    const auto crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes_.data()), kHeaderCrc));
    std::memcpy(&bytes_[kHeaderCrc], &crc, sizeof(crc));
  }
  [[nodiscard]] size_t newest_record() const { return word(record(0)) > word(record(1)) ? record(0) : record(1); }
  static size_t record(size_t i) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    return page + i * (4096 + 40 + page - 1) / page * page;
  }

  static constexpr size_t kIdentity = 16;
  static constexpr size_t kBoot = 48;
  static constexpr size_t kHeaderCrc = 92;
  static constexpr size_t kVersion = 8;  // position in a record

 private:
  std::string path_;
  std::string bytes_;
};

TEST(Durability, AStateIsTakenOverWithSlotsAndLedger) {
  const TempDir folder;
  for (const auto durability : {Durability::process, Durability::machine}) {
    const auto options = file_options(folder / std::to_string(static_cast<int>(durability)), durability);
    EXPECT_FALSE(ParameterShard(options).initialised());
    make_state(options, 5);
    ParameterShard shard(options);
    expect_version(shard, 5);
    EXPECT_EQ(text_of(shard.current().ledger), "update 4");
    apply_numbered(shard, 5);
    expect_version(shard, 6);
  }
}

TEST(Durability, TheSettingMayChangeBetweenTwoStarts) {
  const TempDir folder;
  make_state(file_options(folder / "state"), 5);
  { expect_version(ParameterShard(file_options(folder / "state", Durability::machine)), 5); }
  expect_version(ParameterShard(file_options(folder / "state")), 5);
}

TEST(Durability, ViewsMakeTheFileGrowAndItIsReadAgain) {
  const TempDir folder;
  const auto options = file_options(folder / "state");
  {
    ParameterShard shard(options);
    shard.initialise(0, numbered_values(1000000, kCount), {}, {});
    std::vector<View> views;
    for (uint64_t i = 0; i < 10; ++i) views.push_back(apply_numbered(shard, i));
  }
  expect_version(ParameterShard(options), 10);
}

TEST(Durability, AFileOfAnotherRunOrSizeIsRefused) {
  const TempDir folder;
  const auto options = file_options(folder / "state");
  make_state(options, 1);
  auto other = options;
  other.identity = 43;
  EXPECT_THAT(refusal(other), AllOf(HasSubstr(options.file), HasSubstr("another run")));
  other = options;
  other.parameters = 17;
  EXPECT_THAT(refusal(other), AllOf(HasSubstr("holds 3000 parameters"), HasSubstr("expected 17 parameters")));
  other = options;
  other.optimizer = settings_of(optim::Method::adam);
  EXPECT_THAT(refusal(other), HasSubstr("1 slots"));
  expect_version(ParameterShard(options), 1);
}

TEST(Durability, AnEmptyOrForeignFileIsRefusedAndLeftAlone) {
  const TempDir folder;
  const auto options = file_options(folder / "state");
  lockstep::testing::put_file(options.file, {});
  EXPECT_THAT(refusal(options), HasSubstr("is truncated: 0 bytes"));
  const std::vector<uint8_t> text(500, 'x');
  lockstep::testing::put_file(options.file, text);
  EXPECT_THAT(refusal(options), HasSubstr("is not a state file"));
  EXPECT_EQ(get_file(options.file), std::string(500, 'x'));
}

TEST(Durability, ATruncatedFileIsRefused) {
  const TempDir folder;
  const auto options = file_options(folder / "state");
  make_state(options, 3);
  Bytes bytes(options.file);
  for (const size_t size : {bytes.size() - 1, bytes.size() / 2, Bytes::record(1), size_t{50}}) {
    bytes.resize(size);
    bytes.save();
    EXPECT_THAT(refusal(options), HasSubstr("is truncated")) << size;
  }
}

TEST(Durability, ADamagedHeaderOrRecordIsRefused) {
  const TempDir folder;
  const auto options = file_options(folder / "state");
  make_state(options, 3);
  const Bytes whole(options.file);
  for (const size_t at : {Bytes::kIdentity, Bytes::kBoot, Bytes::kHeaderCrc, whole.newest_record() + Bytes::kVersion,
                          whole.newest_record() + 24, whole.newest_record() + 40}) {
    Bytes bytes(whole);
    bytes.flip(at);
    bytes.save();
    EXPECT_THAT(refusal(options), HasSubstr("is damaged")) << "byte " << at;
  }
  whole.save();
  expect_version(ParameterShard(options), 3);
}

TEST(Durability, ARecordTornByAPowerCutLeavesTheVersionBefore) {
  const TempDir folder;
  const auto options = file_options(folder / "state", Durability::machine);
  make_state(options, 4);
  Bytes bytes(options.file);
  bytes.flip(bytes.newest_record() + Bytes::kVersion);
  bytes.save();
  {
    ParameterShard shard(options);
    expect_version(shard, 3);
    EXPECT_EQ(text_of(shard.current().ledger), "update 2");
    apply_numbered(shard, 3);
  }
  expect_version(ParameterShard(options), 4);
}

TEST(Durability, TheVersionBeforeIsNotOverwrittenWhereItMayBeNeeded) {
  const TempDir folder;
  ParameterShard shard(file_options(folder / "state", Durability::machine));
  shard.initialise(0, numbered_values(1000000, kCount), {}, {});
  std::vector<const float*> places{shard.current().parameters.data()};
  for (uint64_t i = 0; i < 10; ++i) {
    places.push_back(apply_numbered(shard, i).parameters.data());
    for (size_t back = 1; back <= std::min<size_t>(2, i + 1); ++back) {
      EXPECT_NE(places.back(), places[places.size() - 1 - back]);
    }
  }
}

TEST(Durability, AfterTheMachineStartedAnewOnlyASyncedStateCounts) {
  const TempDir folder;
  for (const auto durability : {Durability::process, Durability::machine}) {
    const auto options = file_options(folder / std::to_string(static_cast<int>(durability)), durability);
    make_state(options, 2);
    Bytes bytes(options.file);
    bytes.flip(Bytes::kBoot);
    bytes.seal_header();
    bytes.save();
    if (durability == Durability::process) {
      EXPECT_THAT(refusal(options), HasSubstr("before this machine was started"));
    } else {
      expect_version(ParameterShard(options), 2);
    }
  }
}

TEST(Durability, ARowOfTheRecordThatAFullDiskCutOffIsNotContinued) {
  const TempDir folder;
  const std::string path = folder / "contributions.csv";
  const std::vector<Contributed> made{{0, 10, 0.5, {{2, {{30, 40}}}}}};
  const auto tear = [&](const std::string& text) { std::ofstream(path, std::ios::trunc) << text; };
  ContributionsFile(path).add(1, made);
  const std::string whole = get_file(path);
  tear(whole + "2,1,1,0,10,0.5,2:4");
  ContributionsFile(path).add(2, made);
  EXPECT_EQ(get_file(path), whole + "2,1,1,0,10,0.5,2:30-40\n");
  tear("version,row");
  ContributionsFile(path).add(1, made);
  EXPECT_EQ(get_file(path), whole);
}

TEST(Durability, AStateHasOneOwner) {
  const TempDir folder;
  const auto options = file_options(folder / "state");
  const ParameterShard shard(options);
  EXPECT_THAT(message_of<IoError>([&] { const ParameterShard second(options); }), HasSubstr(options.file));
}

/// A file system of a few bytes; skips the test if it cannot be made.
class SmallDisk : public ::testing::Test {
 protected:
  void mount(size_t bytes) {
    const std::string size = "size=" + std::to_string(bytes);
    if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
    if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, size.c_str()) != 0) {
      GTEST_SKIP() << "cannot mount a tmpfs: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  /// Fills the remaining space.
  void fill() const {
    std::ofstream out(folder_ / "filler", std::ios::binary);
    const std::string block(4096, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }

  TempDir folder_;
  bool mounted_ = false;
};

TEST_F(SmallDisk, ThatIsTooSmallIsSaidAtTheStartWithFileAndBytes) {
  mount(16 * 4096);
  if (IsSkipped()) return;
  const auto options = file_options(folder_ / "state");
  EXPECT_THAT(message_of<IoError>([&] { const ParameterShard shard(options); }),
              AllOf(HasSubstr("cannot reserve"), HasSubstr("bytes for " + options.file), HasSubstr("No space left")));
  EXPECT_THAT(folder_.names(), ::testing::ElementsAre("state.lock"));
}

TEST_F(SmallDisk, ThatFillsUpLaterHoldsNoUpdateUp) {
  mount(1 << 20);
  if (IsSkipped()) return;
  ParameterShard shard(file_options(folder_ / "state"));
  fill();
  shard.initialise(0, numbered_values(1000000, kCount), {}, {});
  for (uint64_t i = 0; i < 20; ++i) apply_numbered(shard, i);
  expect_version(shard, 20);
}

TEST_F(SmallDisk, ThatIsFullHasNoRoomUntilAViewEnds) {
  mount(1 << 20);
  if (IsSkipped()) return;
  ParameterShard shard(file_options(folder_ / "state"));
  fill();
  shard.initialise(0, numbered_values(1000000, kCount), {}, {});
  auto first = std::make_unique<View>(shard.current());
  const View second = apply_numbered(shard, 0);
  apply_numbered(shard, 1);
  const auto size = std::filesystem::file_size(folder_ / "state");
  EXPECT_FALSE(shard.has_room());
  EXPECT_THROW(apply_numbered(shard, 2), IoError);
  first.reset();
  EXPECT_TRUE(shard.has_room());
  apply_numbered(shard, 2);
  expect_version(shard, 3);
  EXPECT_EQ(second.version, 1U);
  EXPECT_EQ(std::filesystem::file_size(folder_ / "state"), size);
}

}  // namespace
}  // namespace lockstep::ps
