#include "data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/temp_dir.h"
#include "data/formats.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::append;
using lockstep::testing::Bytes;
using lockstep::testing::gzip;
using lockstep::testing::make_idx;
using lockstep::testing::message_of;
using lockstep::testing::put_file;
using lockstep::testing::ramp;
using lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string data_error(const Bytes& file) {
  return message_of<DataError>([&] { parse_idx(file, "f"); });
}

TEST(Idx, ReadsPlainAndGzipAlike) {
  const Bytes data = ramp(1000 * 10 * 30);
  const Bytes file = make_idx({1000, 10, 30}, data);
  for (const Bytes& content : {file, gzip(file)}) {
    const TempDir dir;
    put_file(dir / "misleading.png", content);
    const IdxArray array = read_idx(dir / "misleading.png");
    EXPECT_THAT(array.dims, ElementsAre(1000, 10, 30));
    EXPECT_EQ(array.data, data);
    EXPECT_EQ(parse_idx(content, "f").data, data);
  }
}

TEST(Idx, ReadsGzipOfSeveralMembers) {
  const Bytes data = ramp(500);
  const Bytes file = make_idx({500}, data);
  Bytes packed = gzip({file.begin(), file.begin() + 100});
  append(packed, gzip({file.begin() + 100, file.end()}));
  EXPECT_EQ(parse_idx(packed, "f").data, data);
}

TEST(Idx, RefusesWhatIsNoIdxFile) {
  EXPECT_EQ(data_error({}), "f: not an idx file: it has 0 bytes, a header has at least 8");
  EXPECT_EQ(data_error({0, 0, 8}), "f: not an idx file: it has 3 bytes, a header has at least 8");
  EXPECT_EQ(data_error({0x89, 'P', 'N', 'G', 0, 0}),
            "f: not an idx file: it starts with 89504e47, an idx file of bytes with 0000080N (N dimensions)");
  EXPECT_EQ(data_error({0, 0, 0x0d, 1, 0, 0, 0, 0}),
            "f: element type 0x0d (float32); only 0x08 (unsigned byte) is allowed");
  EXPECT_EQ(data_error({0, 0, 0x55, 1, 0, 0, 0, 0}),
            "f: element type 0x55 (unknown); only 0x08 (unsigned byte) is allowed");
  EXPECT_EQ(data_error({0, 0, 8, 0}), "f: 0 dimensions; 1 to 4 are allowed");
  EXPECT_EQ(data_error({0, 0, 8, 9}), "f: 9 dimensions; 1 to 4 are allowed");
  EXPECT_EQ(data_error({0, 0, 8, 3, 0, 0, 0, 1, 0}), "f: cut off within its header");
}

TEST(Idx, RefusesPlainDataThatIsTooShortOrTooLong) {
  EXPECT_EQ(data_error(make_idx({100}, ramp(60))),
            "f: cut off or damaged: its header declares 100 bytes of data, the file has 68 bytes");
  EXPECT_EQ(data_error(make_idx({100}, ramp(95))), "f: cut off: 95 bytes of data, its header declares 100");
  EXPECT_EQ(data_error(make_idx({100}, ramp(101))), "f: data follows after the 100 bytes that its header declares");
}

TEST(Idx, RefusesGzipDataThatIsTooShortOrTooLong) {
  EXPECT_EQ(data_error(gzip(make_idx({10, 10}, ramp(99)))), "f: cut off: 99 bytes of data, its header declares 100");
  EXPECT_EQ(data_error(gzip(make_idx({10, 10}, ramp(101)))),
            "f: data follows after the 100 bytes that its header declares");
}

TEST(Idx, RefusesDamagedGzipAtEveryCut) {
  const Bytes whole = gzip(make_idx({40, 5, 5}, ramp(1000)));
  for (size_t size = 2; size < whole.size(); ++size) {
    EXPECT_THAT(data_error({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), HasSubstr("cut off"))
        << size;
  }
  Bytes checksum = whole;
  checksum[checksum.size() - 6] ^= 1;
  EXPECT_EQ(data_error(checksum), "f: damaged gzip data (incorrect data check) after 1016 unpacked bytes");
  Bytes trailing = whole;
  append(trailing, "garbage");
  EXPECT_EQ(data_error(trailing), "f: bytes that are not gzip data follow after 1016 unpacked bytes");
}

/// Allocating the sizes in these headers would fail or exhaust the machine.
TEST(Idx, DoesNotBelieveAbsurdSizes) {
  EXPECT_EQ(
      data_error(make_idx({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, ramp(50))),
      "f: cut off or damaged: its header declares 4294967295 x 4294967295 x 4294967295 x 4294967295 bytes of data, "
      "the file has 70 bytes");
  EXPECT_THAT(data_error(gzip(make_idx({60000, 4000, 4000}, ramp(50)))),
              AllOf(HasSubstr("60000 x 4000 x 4000"), HasSubstr("bytes of gzip data")));
}

/// A gzip file large enough for its header to be true: memory must grow only with the data.
TEST(Idx, GrowsOnlyAsDataArrives) {
  const Bytes packed = gzip(make_idx({2'000'000'000}, Bytes(3'000'000)));
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_THAT(data_error(packed), StartsWith("f: cut off"));
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 20'000) << "kB";
}

TEST(Idx, NamesTheFileThatCannotBeRead) {
  const TempDir dir;
  EXPECT_THAT(message_of<IoError>([&] { read_idx(dir / "no"); }),
              AllOf(HasSubstr(dir / "no"), HasSubstr("No such file or directory")));
  EXPECT_THAT(message_of<IoError>([&] { read_idx(dir.path()); }), HasSubstr("Is a directory"));
}

class IdxPair : public ::testing::Test {
 protected:
  Examples read(const Bytes& images, const Bytes& labels) {
    put_file(images_, images);
    put_file(labels_, labels);
    return read_idx_pair(images_, labels_, 10);
  }

  std::string error(const Bytes& images, const Bytes& labels) {
    return message_of<DataError>([&] { read(images, labels); });
  }

  TempDir dir_;
  std::string images_ = dir_ / "images";
  std::string labels_ = dir_ / "labels";
};

TEST_F(IdxPair, GivesImagesAndLabels) {
  const Examples examples = read(make_idx({3, 2, 4}, ramp(24)), gzip(make_idx({3}, {7, 0, 9})));
  EXPECT_EQ(examples.count(), 3);
  EXPECT_EQ(examples.shape, (ImageShape{1, 2, 4}));
  EXPECT_EQ(examples.classes, 10);
  EXPECT_EQ(examples.bytes, ramp(24));
  EXPECT_THAT(examples.labels, ElementsAre(7, 0, 9));
}

TEST_F(IdxPair, RefusesDifferentCounts) {
  EXPECT_EQ(error(make_idx({3, 2, 4}, ramp(24)), make_idx({2}, {7, 0})),
            images_ + " has 3 images but " + labels_ + " has 2 labels");
}

TEST_F(IdxPair, RefusesLabelsOutOfRange) {
  EXPECT_EQ(error(make_idx({3, 2, 4}, ramp(24)), make_idx({3}, {7, 0, 10})),
            labels_ + ": label 10 of example 2 is out of range; 0 to 9 are allowed");
}

TEST_F(IdxPair, RefusesEmptyData) {
  EXPECT_EQ(error(make_idx({0, 28, 28}, {}), make_idx({0}, {})), labels_ + ": no labels: the data set is empty");
  EXPECT_EQ(error(make_idx({0, 28, 28}, {}), make_idx({1}, {1})), images_ + ": no images: the data set is empty");
  EXPECT_EQ(error(make_idx({1, 0, 28}, {}), make_idx({1}, {1})),
            images_ + ": images of 0 x 28 pixels; 1 to 4096 a side are allowed");
}

TEST_F(IdxPair, RefusesSwappedFiles) {
  EXPECT_EQ(error(make_idx({3}, {7, 0, 1}), make_idx({3, 2, 4}, ramp(24))),
            labels_ + ": 3 dimensions (3 x 2 x 4); labels have 1");
  EXPECT_EQ(error(make_idx({3}, {7, 0, 1}), make_idx({3}, {7, 0, 1})), images_ + ": 1 dimensions (3); images have 3");
}

}  // namespace
}  // namespace lockstep::data
