#include "data/own_data.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "data/catalog.h"
#include "data/formats.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::Bytes;
using lockstep::testing::bytes_of;
using lockstep::testing::make_npy;
using lockstep::testing::make_zip;
using lockstep::testing::message_of;
using lockstep::testing::npy_dict;
using lockstep::testing::put_file;
using lockstep::testing::ramp;
using lockstep::testing::TempDir;
using lockstep::testing::ZipPart;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ZipPart floats(const std::string& name, const std::string& shape, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) / 8;
  return {name + ".npy", make_npy(npy_dict("<f4", shape), bytes_of(values)), 8};
}

ZipPart labels(const std::string& name, const std::vector<int32_t>& values) {
  return {name + ".npy", make_npy(npy_dict("<i4", "(" + std::to_string(values.size()) + ",)"), bytes_of(values)), 0};
}

Dataset read(const std::vector<ZipPart>& parts, const OwnDataOptions& options = {}) {
  return parse_own_data(make_zip(parts), "d.npz", options);
}

Dataset read(std::string_view csv, const OwnDataOptions& options = {}) {
  return parse_own_data(Bytes(csv.begin(), csv.end()), "d.csv", options);
}

TEST(OwnData, NpzSplitsAreThoseOfTheFile) {
  const Dataset dataset =
      read({floats("X_train", "(4, 6)", 24), labels("y_train", {0, 1, 2, 1}), floats("X_valid", "(1, 6)", 6),
            labels("y_valid", {4}), floats("X_test", "(2, 6)", 12), labels("y_test", {0, 1})});
  EXPECT_EQ(dataset.train.count(), 4);
  EXPECT_EQ(dataset.validation.count(), 1);
  EXPECT_EQ(dataset.test.count(), 2);
  EXPECT_EQ(dataset.classes(), 5);
  EXPECT_EQ(dataset.test.classes, 5);
  EXPECT_EQ(dataset.shape(), (ImageShape{1, 1, 6}));
  EXPECT_EQ(dataset.test.floats[1], 0.125F);
  EXPECT_EQ(dataset.name, "d.npz");
}

TEST(OwnData, FlatValuesTakeTheShapeThatTheModelWants) {
  const std::vector<ZipPart> parts{floats("x_train", "(3, 6)", 18), labels("y_train", {0, 1, 0}),
                                   floats("x_test", "(1, 6)", 6), labels("y_test", {0})};
  EXPECT_EQ(read(parts, {.expected = {1, 2, 3}}).shape(), (ImageShape{1, 2, 3}));
  EXPECT_EQ(read(parts, {.expected = {1, 28, 28}}).shape(), (ImageShape{1, 1, 6}));
}

TEST(OwnData, ImagesOfAllShapesAreTaken) {
  const auto shape = [](const std::string& text, size_t count, ImageShape expected = {}) {
    return read({floats("images", text, count)}, {.expected = expected}).shape();
  };
  EXPECT_EQ(shape("(2, 3, 4, 5)", 120), (ImageShape{3, 4, 5}));
  EXPECT_EQ(shape("(2, 4, 5)", 40), (ImageShape{1, 4, 5}));
  EXPECT_EQ(shape("(2, 4, 5, 1)", 40, {1, 4, 5}), (ImageShape{1, 4, 5}));
  EXPECT_EQ(shape("(2, 4, 5, 1)", 40), (ImageShape{4, 5, 1}));
}

TEST(OwnData, OnePairGivesItsLastSixthToTheTestSplit) {
  const Dataset dataset = read({floats("X", "(12, 2)", 24), labels("y", {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, 0})});
  EXPECT_EQ(dataset.train.count(), 10);
  EXPECT_THAT(dataset.test.labels, ElementsAre(2, 0));
  EXPECT_THAT(dataset.test.floats, ElementsAre(20 / 8.0F, 21 / 8.0F, 22 / 8.0F, 23 / 8.0F));
  EXPECT_EQ(dataset.classes(), 3);
  EXPECT_THAT(dataset.origin, HasSubstr("the last 2 are the test split"));
}

TEST(OwnData, TheTestSplitsSizeIsASetting) {
  const std::vector<ZipPart> parts{floats("X_train", "(12, 2)", 24),
                                   labels("y_train", {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, 0})};
  EXPECT_EQ(read(parts, {.test_size = 5}).test.count(), 5);
  EXPECT_THAT(message_of<UsageError>([&] { read(parts, {.test_size = 12}); }),
              HasSubstr("12 examples cannot give 12 to the test split"));
}

TEST(OwnData, ExamplesSortedByClassAreTestedOnAllClasses) {
  const Dataset dataset =
      read({floats("X", "(12, 1)", 12), labels("y", {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2})}, {.test_size = 3});
  EXPECT_THAT(dataset.test.labels, ElementsAre(0, 1, 2));
  EXPECT_THAT(dataset.train.labels, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 2));
  EXPECT_THAT(dataset.test.floats, ElementsAre(3 / 8.0F, 7 / 8.0F, 11 / 8.0F));
  EXPECT_THAT(dataset.origin, HasSubstr("sorted by class; 3 spread evenly are the test split"));
}

TEST(OwnData, LabelsMayBeAbsent) {
  const Dataset dataset = read({floats("x_train", "(3, 6)", 18), floats("x_test", "(1, 6)", 6)});
  EXPECT_THAT(dataset.train.labels, IsEmpty());
  EXPECT_EQ(dataset.classes(), 2);
}

TEST(OwnData, BytesStayBytes) {
  const Dataset dataset =
      read({{"X.npy", make_npy(npy_dict("|u1", "(6, 4)"), ramp(24)), 0}, labels("y", {0, 1, 0, 1, 0, 1})});
  EXPECT_EQ(dataset.train.bytes.size(), 20U);
  EXPECT_THAT(dataset.test.bytes, ElementsAre(20, 21, 22, 23));
  EXPECT_THAT(dataset.test.floats, IsEmpty());
}

TEST(OwnData, EachFaultOfAnNpzIsOneLine) {
  const auto fault = [](const std::vector<ZipPart>& parts) {
    const std::string message = message_of<DataError>([&] { read(parts); });
    EXPECT_THAT(message, AllOf(HasSubstr("d.npz"), Not(HasSubstr("\n"))));
    return message;
  };
  EXPECT_THAT(fault({floats("a", "(2, 2)", 4), floats("b", "(2, 2)", 4)}),
              HasSubstr("no training examples; X_train, X or images is needed; it has a, b"));
  EXPECT_THAT(fault({floats("X_test", "(2, 2)", 4), floats("X", "(2, 2)", 4)}), HasSubstr("no training examples"));
  EXPECT_THAT(fault({floats("X", "(2, 2)", 4), labels("y", {0, 1, 0})}),
              HasSubstr("2 examples in X but 3 labels in y"));
  EXPECT_THAT(fault({floats("X", "(4,)", 4)}), HasSubstr("shape (4) is not examples; (n,c,h,w), (n,h,w) and (n,f)"));
  EXPECT_THAT(fault({floats("X", "(0, 2)", 0)}), HasSubstr("no images in shape"));
  EXPECT_THAT(fault({floats("X", "(2, 2)", 4), floats("y", "(2,)", 2)}), HasSubstr("of floats is not labels"));
  EXPECT_THAT(fault({floats("X", "(2, 2)", 4), labels("y", {0, -1})}), HasSubstr("label -1 of example 1"));
  EXPECT_THAT(fault({floats("X", "(2, 2)", 4), labels("y", {0, 2000000})}), HasSubstr("label 2000000; 0 to 999999"));
  EXPECT_THAT(fault({floats("X_train", "(2, 2)", 4), floats("X_test", "(2, 3)", 6)}),
              HasSubstr("training examples of 1x1x2 (channels x height x width) but others of 1x1x3"));
  EXPECT_THAT(fault({floats("X_train", "(2, 2)", 4), labels("y_train", {0, 1}), floats("X_test", "(2, 2)", 4)}),
              HasSubstr("some splits have labels and some have none"));
  EXPECT_THAT(fault({{"X.npy", make_npy(npy_dict("<f2", "(2, 2)"), ramp(8)), 0}}), HasSubstr("'<f2'"));
  EXPECT_THAT(fault({{"X.npy", make_npy(npy_dict("<i4", "(2, 1)"), bytes_of<int32_t>({3, 256})), 0}}),
              HasSubstr("integers must be 0 to 255; save other numbers as float32"));
  const std::vector<float> bad{1, 2, 3, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THAT(fault({{"X.npy", make_npy(npy_dict("<f4", "(2, 2)"), bytes_of(bad)), 0}}),
              HasSubstr("d.npz:X: value 1 of example 1 is nan; finite numbers are allowed"));
}

TEST(OwnData, ATruncatedNpzIsOneLine) {
  const Bytes whole = make_zip({floats("X", "(6, 40)", 240), labels("y", {0, 1, 0, 1, 0, 1})});
  for (const size_t size : {size_t{0}, size_t{10}, whole.size() / 2, whole.size() - 1}) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(message_of<DataError>([&] { parse_own_data(cut, "d.npz", {}); }),
                AllOf(HasSubstr("d.npz"), Not(HasSubstr("\n"))));
  }
}

TEST(OwnData, CsvBecomesADataSet) {
  const Dataset dataset = read("a,b,kind\n1,2,x\n3,4,y\n5,6,x\n", {.label_column = "kind"});
  EXPECT_EQ(dataset.shape(), (ImageShape{1, 1, 2}));
  EXPECT_THAT(dataset.train.floats, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(dataset.test.labels, ElementsAre(0));
  EXPECT_THAT(dataset.class_names, ElementsAre("x", "y"));
  EXPECT_THAT(dataset.origin, HasSubstr("labels from column 'kind': 2 classes (x, y)"));
}

TEST(OwnData, TheOriginSaysHowManyClassesWereFound) {
  EXPECT_THAT(read("1,0\n2,4\n3,0\n").origin, HasSubstr("labels from column 2: 5 classes, of which 2 occur"));
  EXPECT_THAT(read("1,a\n2,b\n3,c\n4,d\n5,e\n6,f\n").origin, HasSubstr("6 classes (a, b, c, d, e, ...)"));
  std::string prices;
  for (int i = 0; i < 200; ++i) prices += fmt::format("1,{}\n", 1000 + 7 * i);
  EXPECT_THAT(read(prices).origin, HasSubstr("2394 classes, of which 200 occur (if they are measured values, no"));
}

TEST(OwnData, WholeNumbersThatFillTheModelsImageArePixels) {
  const char* text = "1,0,255,0,0\n0,128,7,3,1\n0,0,0,0,0\n";
  const Dataset images = read(text, {.expected = {1, 2, 2}});
  EXPECT_THAT(images.train.bytes, ElementsAre(1, 0, 255, 0, 0, 128, 7, 3));
  EXPECT_THAT(images.origin, HasSubstr("pixels from 0 to 255"));
  EXPECT_THAT(read(text, {.expected = {1, 3, 3}}).train.bytes, IsEmpty());
  EXPECT_THAT(read("0,1,0.5,0,0\n0,1,0,1,1\n", {.expected = {1, 2, 2}}).train.bytes, IsEmpty());
  EXPECT_THAT(read("0,1,1,0,0\n0,1,0,1,1\n", {.expected = {1, 2, 2}}).train.bytes, IsEmpty());
}

TEST(OwnData, APathIsToldFromAName) {
  for (const char* path : {"a.npz", "A.CSV", "a.csv.gz", "./a", "/b/c.npz"}) EXPECT_TRUE(is_own_data(path)) << path;
  for (const char* name : {"mnist", "npz", "csv", "a.txt", ""}) EXPECT_FALSE(is_own_data(name)) << name;
}

TEST(OwnData, IsLoadedLikeAnyDataSet) {
  const TempDir dir;
  const std::string text = "1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n8,1\n9,0\n10,1\n11,0\n12,1\n";
  put_file(dir / "d.csv", Bytes(text.begin(), text.end()));
  LoadOptions options;
  options.holdout = 2;
  options.train_limit = 6;
  options.scale = 0.5;
  const Dataset dataset = load(dir / "d.csv", options);
  EXPECT_THAT(dataset.train.floats, ElementsAre(1, 2, 3));
  EXPECT_THAT(dataset.validation.floats, ElementsAre(9, 10));
  EXPECT_THAT(dataset.test.floats, ElementsAre(11, 12));
  EXPECT_THAT(message_of<DataError>([&] { load(dir / "d.txt", {}); }), HasSubstr("ends in .npz, .csv or .csv.gz"));
  options.train_size = 5;
  EXPECT_THAT(message_of<UsageError>([&] { load(dir / "d.csv", options); }), HasSubstr("train-size 5"));
}

}  // namespace
}  // namespace lockstep::data
