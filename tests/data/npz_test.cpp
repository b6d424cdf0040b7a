#include "data/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/temp_dir.h"
#include "data/formats.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::append;
using lockstep::testing::Bytes;
using lockstep::testing::bytes_of;
using lockstep::testing::make_npy;
using lockstep::testing::make_zip;
using lockstep::testing::message_of;
using lockstep::testing::npy_dict;
using lockstep::testing::put_file;
using lockstep::testing::ramp;
using lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string npy_error(const Bytes& file) {
  return message_of<DataError>([&] { parse_npy(file, "f"); });
}

std::string zip_error(const Bytes& file, const std::string& array = "x") {
  return message_of<DataError>([&] { (void)Npz::parse(file, "f").read(array); });
}

Bytes small_npy() { return make_npy(npy_dict("|u1", "(2, 3)"), ramp(6)); }

TEST(Npy, ReadsEveryTypeAllowed) {
  EXPECT_EQ(parse_npy(make_npy(npy_dict("|u1", "(2,)"), {1, 200}), "f").at(1), 200);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("<i4", "(2,)"), bytes_of<int32_t>({1, -5})), "f").at(1), -5);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("<i8", "(2,)"), bytes_of<int64_t>({1, -5'000'000'000})), "f").at(1), -5e9);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("<f4", "(2,)"), bytes_of<float>({1, 0.5F})), "f").at(1), 0.5);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("<f8", "(2,)"), bytes_of<double>({1, 1e-9})), "f").at(1), 1e-9);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("|b1", "(2,)"), {0, 1}), "f").at(1), 1);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("|i1", "(1,)"), {0xFE}), "f").at(0), -2);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("<i2", "(1,)"), bytes_of<int16_t>({-300})), "f").at(0), -300);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("<u2", "(1,)"), bytes_of<uint16_t>({65535})), "f").at(0), 65535);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("<u4", "(1,)"), bytes_of<uint32_t>({4'000'000'000})), "f").at(0), 4e9);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("<u8", "(1,)"), bytes_of<uint64_t>({1ULL << 63})), "f").at(0), 0x1p63);
}

TEST(Npy, TurnsBigEndianElements) {
  const NpyArray shorts = parse_npy(make_npy(npy_dict(">i2", "(2,)"), {0x01, 0x02, 0xFF, 0xFE}), "f");
  EXPECT_EQ(shorts.at(0), 0x0102);
  EXPECT_EQ(shorts.at(1), -2);
  EXPECT_EQ(parse_npy(make_npy(npy_dict(">f4", "(1,)"), {0x3F, 0x80, 0, 0}), "f").at(0), 1);
}

TEST(Npy, ReadsBothFormatVersionsAndScalars) {
  EXPECT_THAT(parse_npy(make_npy(npy_dict("|u1", "(2, 3)"), ramp(6), 2), "f").shape, ElementsAre(2, 3));
  EXPECT_EQ(parse_npy(make_npy(npy_dict("|u1", "()"), {9}), "f").at(0), 9);
  EXPECT_EQ(parse_npy(make_npy(npy_dict("|u1", "(0, 5)"), {}), "f").size(), 0);
}

TEST(Npy, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(npy_error({1, 2, 3}), "f: not a npy array: it does not start with \\x93NUMPY");
  EXPECT_EQ(npy_error(make_npy(npy_dict("|u1", "(1,)"), {1}, 3)), "f: npy format 3.0; 1 and 2 are allowed");
  EXPECT_EQ(npy_error(make_npy(npy_dict("<f2", "(1,)"), ramp(2))),
            "f: elements of type '<f2': booleans, integers, f4 and f8 are allowed: save a.astype(numpy.float32)");
  EXPECT_EQ(
      npy_error(make_npy(npy_dict("<U3", "(1,)"), ramp(12))),
      "f: elements of type '<U3': texts; number them: numpy.unique(a, return_inverse=True)[1] are labels, and its "
      "[0] their names");
  EXPECT_THAT(npy_error(make_npy(npy_dict("|O", "(1,)"), ramp(8))), HasSubstr("Python objects; save plain numbers"));
  EXPECT_THAT(npy_error(make_npy(npy_dict("", "(1,)"), ramp(8))), HasSubstr("elements of type ''"));
  EXPECT_EQ(npy_error(make_npy(npy_dict("<f4", "(1,)", true), ramp(4))),
            "f: bad npy header: Fortran order; only C order is allowed: save numpy.ascontiguousarray(a)");
  EXPECT_EQ(npy_error(make_npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", ramp(4))),
            "f: bad npy header: structured elements; only plain numbers are allowed");
  EXPECT_EQ(npy_error(make_npy("{'descr': '<f4', 'color': 3}", {})),
            "f: bad npy header: key 'color'; descr, fortran_order and shape are allowed");
}

TEST(Npy, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(npy_error(make_npy(npy_dict("<f4", "(2, 3)"), ramp(23))),
            "f: shape (2,3) of 4-byte elements, but 23 bytes of data");
  EXPECT_EQ(npy_error(make_npy(npy_dict("<f4", "(2, 3)"), ramp(25))),
            "f: shape (2,3) of 4-byte elements, but 25 bytes of data");
  EXPECT_THAT(npy_error(make_npy(npy_dict("<f8", "(9000000000000000000, 9000000000000000000)"), ramp(8))),
              HasSubstr("but 8 bytes of data"));
  EXPECT_THAT(npy_error(make_npy(npy_dict("|u1", "(-1,)"), {})), HasSubstr("not a valid number"));
  EXPECT_THAT(npy_error(make_npy(npy_dict("|u1", "(99999999999999999999,)"), {})), HasSubstr("not a valid number"));
  EXPECT_THAT(npy_error(make_npy(npy_dict("|u1", "(1,1,1,1,1,1,1,1,1)"), {1})), HasSubstr("more than 8 dimensions"));
}

TEST(Npy, RefusesEveryCutOfTheHeader) {
  const Bytes whole = small_npy();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(npy_error({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}),
                ::testing::StartsWith("f: "))
        << size;
  }
}

TEST(Npz, ReadsStoredAndDeflated) {
  for (const int method : {0, 8}) {
    const Npz npz = Npz::parse(make_zip({{"x.npy", small_npy(), method}, {"readme.txt", {'h', 'i'}, 0}}), "f");
    EXPECT_THAT(npz.names(), ElementsAre("x"));
    EXPECT_EQ(npz.read("x").bytes, ramp(6));
    EXPECT_THAT(npz.read("x").shape, ElementsAre(2, 3));
  }
}

TEST(Npz, NamesTheArraysThereAre) {
  EXPECT_EQ(zip_error(make_zip({{"a.npy", small_npy()}, {"b.npy", small_npy()}})), "f: no array 'x'; it has a, b");
  EXPECT_EQ(zip_error(make_zip({{"a.txt", small_npy()}})), "f: no arrays in the archive");
}

TEST(Npz, RefusesDamage) {
  EXPECT_EQ(zip_error({'P', 'K'}), "f: not a zip archive, or cut off: it has no end record");
  const Bytes whole = make_zip({{"x.npy", small_npy(), 8}});
  Bytes checksum = whole;
  checksum[14] = checksum[14];
  const size_t entry = whole.size() - 22 - 51;
  ASSERT_EQ(whole[entry], 'P');
  checksum[entry + 16] ^= 1;
  EXPECT_EQ(zip_error(checksum), "f: entry 'x.npy' is damaged: its checksum does not match");
  Bytes method = whole;
  method[entry + 10] = 12;
  EXPECT_EQ(zip_error(method), "f: entry 'x.npy' is packed with method 12; 0 (stored) and 8 (deflated) are allowed");
  Bytes encrypted = whole;
  encrypted[entry + 8] |= 1;
  EXPECT_EQ(zip_error(encrypted), "f: entry 'x.npy' is encrypted");
  Bytes bomb = whole;
  bomb[entry + 27] = 0x70;
  EXPECT_THAT(zip_error(bomb), HasSubstr("bytes cannot come from"));
  Bytes larger = whole;
  larger[entry + 24] ^= 1;
  EXPECT_THAT(zip_error(larger), HasSubstr("does not unpack to"));
  Bytes elsewhere = whole;
  elsewhere[entry + 44] = 0x7f;
  EXPECT_THAT(zip_error(elsewhere), HasSubstr("no header at"));
}

TEST(Npz, RefusesZip64WithTheReason) {
  const Bytes whole = make_zip({{"x.npy", small_npy(), 8}});
  Bytes entry64 = whole;
  const size_t entry = whole.size() - 22 - 51;
  for (size_t i = 0; i < 4; ++i) entry64[entry + 24 + i] = 0xff;
  EXPECT_EQ(zip_error(entry64), "f: entry 'x.npy' is zip64 (more than 4 GB); that is not supported");
  Bytes archive64 = whole;
  for (size_t i = 0; i < 4; ++i) archive64[whole.size() - 6 + i] = 0xff;
  EXPECT_THAT(zip_error(archive64), HasSubstr("a zip64 archive"));
}

TEST(Npz, RefusesEveryCut) {
  const Bytes whole = make_zip({{"x.npy", small_npy(), 0}});
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(zip_error({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}),
                ::testing::StartsWith("f: "))
        << size;
  }
}

TEST(ImagesFromArray, TakesTheUsualShapes) {
  const auto shape_of = [](const std::string& shape, size_t size, ImageShape expected) {
    return images_from_array(parse_npy(make_npy(npy_dict("|u1", shape), ramp(size)), "f"), expected, "f").shape;
  };
  EXPECT_EQ(shape_of("(2, 3, 4, 5)", 120, {}), (ImageShape{3, 4, 5}));
  EXPECT_EQ(shape_of("(2, 4, 5)", 40, {}), (ImageShape{1, 4, 5}));
  EXPECT_EQ(shape_of("(4, 5)", 20, {}), (ImageShape{1, 4, 5}));
  EXPECT_EQ(shape_of("(7, 20)", 140, (ImageShape{1, 4, 5})), (ImageShape{1, 4, 5}));
  EXPECT_EQ(message_of<DataError>([&] {
              shape_of("(7,)", 7, {1, 4, 5});
            }),
            "f: shape (7) is not images; (n,c,h,w), (n,h,w), (h,w) and (n,20) are allowed");
  EXPECT_EQ(message_of<DataError>([&] { shape_of("(0, 4, 5)", 0, {}); }), "f: no images in shape (0,4,5)");
}

TEST(ImagesFromArray, KeepsFloatsAndTurnsIntegersIntoBytes) {
  const auto floats = make_npy(npy_dict("<f8", "(1, 2)"), bytes_of<double>({0.25, 1.0}));
  EXPECT_THAT(images_from_array(parse_npy(floats, "f"), {}, "f").floats, ElementsAre(0.25F, 1.0F));
  const auto integers = make_npy(npy_dict("<i8", "(1, 2)"), bytes_of<int64_t>({3, 255}));
  EXPECT_THAT(images_from_array(parse_npy(integers, "f"), {}, "f").bytes, ElementsAre(3, 255));
  const auto masks = make_npy(npy_dict("|b1", "(1, 2)"), {0, 1});
  EXPECT_THAT(images_from_array(parse_npy(masks, "f"), {}, "f").bytes, ElementsAre(0, 255));
  const auto too_large = make_npy(npy_dict("<i4", "(1, 2)"), bytes_of<int32_t>({3, 256}));
  EXPECT_EQ(message_of<DataError>([&] { images_from_array(parse_npy(too_large, "f"), {}, "f"); }),
            "f: pixel 1 is 256; integers must be 0 to 255; save other numbers as float32");
}

TEST(LabelsFromArray, TakesAColumnOfIntegers) {
  const auto column = make_npy(npy_dict("<i4", "(2, 1)"), bytes_of<int32_t>({3, 9}));
  EXPECT_THAT(labels_from_array(parse_npy(column, "f"), "f"), ElementsAre(3, 9));
  const auto floats = make_npy(npy_dict("<f4", "(2,)"), bytes_of<float>({3, 9}));
  EXPECT_THAT(message_of<DataError>([&] { labels_from_array(parse_npy(floats, "f"), "f"); }),
              HasSubstr("(2) of floats is not labels"));
  const auto negative = make_npy(npy_dict("<i8", "(1,)"), bytes_of<int64_t>({-1}));
  EXPECT_THAT(message_of<DataError>([&] { labels_from_array(parse_npy(negative, "f"), "f"); }),
              HasSubstr("label -1 of example 0 is out of range"));
}

TEST(Npz, ReadsClutteredMnist) {
  const char* root = std::getenv("LOCKSTEP_TEST_DATA");
  const std::string path =
      std::string(root == nullptr ? "" : root) + "/cluttered-mnist/mnist_sequence1_sample_5distortions5x5.npz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  const Npz npz = Npz::open(path);
  const NpyArray images = npz.read("X_train");
  EXPECT_EQ(images.type, NpyType::kF4);
  EXPECT_THAT(images.shape, ElementsAre(10000, 1600));
  const Examples examples = images_from_array(images, {1, 40, 40}, path);
  EXPECT_EQ(examples.count(), 10000);
  const auto labels = labels_from_array(npz.read("y_train"), path);
  EXPECT_EQ(labels.size(), 10000U);
  EXPECT_EQ(*std::max_element(labels.begin(), labels.end()), 9);
}

}  // namespace
}  // namespace lockstep::data
