// `lockstep eval` and `lockstep predict` of a trained run.
#include <png.h>

#include "data/jpegs.h"
#include "e2e/support.h"

namespace lockstep::testing {
namespace {

constexpr int kSide = 28;

void write_png(const std::string& path, uint32_t side = kSide) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = side;
  image.height = side;
  image.format = PNG_FORMAT_GRAY;
  const Bytes pixels = ramp(size_t{side} * side);
  ASSERT_NE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr), 0);
}

class Predict : public ProgramTest {
 protected:
  void SetUp() override { (void)succeed(quick_train("lenet", {"--name", "m"})); }

  [[nodiscard]] nlohmann::json predict(const Words& more) const {
    Words words{"predict", "m-1", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return nlohmann::json::parse(succeed(words).out);
  }
};

TEST_F(Predict, EvalGivesWhatTrainingReported) {
  const auto json = nlohmann::json::parse(succeed({"eval", "m-1", "--checkpoint", "newest", "--json"}).out);
  EXPECT_NEAR(json["loss"].get<double>(), summary("m-1")["test_loss"].get<double>(), 1e-5);
  EXPECT_EQ(json["accuracy"], summary("m-1")["test_accuracy"]);
  EXPECT_EQ(json["examples"], 200);
  EXPECT_THAT(succeed({"eval", "runs/m-1"}).out, AllOf(HasSubstr("accuracy"), HasSubstr("200 test examples")));
}

TEST_F(Predict, EvalOfANamedCheckpointAndSplit) {
  EXPECT_THAT(succeed({"eval", "m-1", "--checkpoint", "step-000000020.ckpt", "--split", "train"}).out,
              AllOf(HasSubstr("step 20"), HasSubstr("1,000 train examples")));
  EXPECT_THAT(succeed({"eval", "runs/m-1/checkpoints/step-000000040.ckpt"}).out, HasSubstr("step 40"));
  EXPECT_THAT(fail({"eval", "m-1", "--split", "tset"}, 2), HasSubstr("tset"));
  EXPECT_THAT(fail({"eval", "m-2"}, 2), HasSubstr("no run 'm-2'"));
}

TEST_F(Predict, AModelThatIsNoClassifierIsRefusedAndItsPicturesAreNamed) {
  const std::string out = succeed(quick_train("autoencoder", {"--name", "a"})).out;
  EXPECT_THAT(out, AllOf(Not(HasSubstr("lockstep predict")), HasSubstr("runs/a-1/pictures")));
  write_png(folder / "digit.png");
  for (const Words& words : {Words{"predict", "a-1", "digit.png"}, Words{"predict", "a-1", "--test", "3"}}) {
    EXPECT_THAT(fail(words, 2), HasSubstr("model 'autoencoder' has no classes; see its pictures in runs/a-1/pictures"));
  }
}

/// Writes twelve images under that name into an npz file.
Bytes images_npz(const std::string& array) {
  return make_zip({{array + ".npy", make_npy(npy_dict("|u1", "(12, 28, 28)"), ramp(12 * 784))}});
}

TEST_F(Predict, DataWithoutLabelsIsToldByModelAndFile) {
  put_file(folder / "plain.npz", images_npz("X"));
  EXPECT_THAT(fail({"predict", "m-1", "--test", "2", "--dataset", "plain.npz"}, 2),
              HasSubstr("plain.npz has no labels"));
  EXPECT_THAT(fail({"train", "lr", "--dataset", "plain.npz", "--batch", "2"}, 2),
              HasSubstr("model 'lr' learns from labels; plain.npz has none"));
}

TEST_F(Predict, EvalOfAModelWithoutLabelsTakesDataWithoutLabels) {
  (void)succeed(quick_train("autoencoder", {"--name", "a"}));
  put_file(folder / "plain.npz", images_npz("X"));
  EXPECT_THAT(succeed({"eval", "a-1", "--dataset", "plain.npz", "--limit", "1"}).out, HasSubstr("on 1 test example: "));
}

TEST_F(Predict, NpzArraysHaveTheNamesThatTrainingKnows) {
  for (const char* array : {"data", "test_images", "x_val", "features"}) {
    const Bytes other = make_npy(npy_dict("|u1", "(1,)"), {1});
    put_file(folder / "named.npz",
             make_zip({{"other.npy", other},
                       {std::string(array) + ".npy", make_npy(npy_dict("|u1", "(12, 28, 28)"), ramp(12 * 784))}}));
    EXPECT_EQ(predict({"named.npz"}).size(), 12U) << array;
  }
}

TEST_F(Predict, EvalOfAnotherCsvKeepsTheLabelColumnAndAsksForTheSameClasses) {
  const auto csv = [&](const std::string& name, const std::string& a, const std::string& b, const std::string& title) {
    std::string text = title + ",p,q\n";
    for (int i = 0; i < 12; ++i) text += (i % 2 == 0 ? a + ",1,2.5\n" : b + ",2.5,1\n");
    put_file(folder / name, Bytes(text.begin(), text.end()));
  };
  csv("one.csv", "cat", "dog", "kind");
  csv("same.csv", "cat", "dog", "kind");
  csv("titled.csv", "cat", "dog", "animal");
  csv("other.csv", "cow", "dog", "kind");
  (void)succeed({"train", "lr", "--dataset", "one.csv", "--label-column", "kind", "--batch", "2", "--epochs", "1",
                 "--name", "c", "--threads", "1"});
  EXPECT_THAT(succeed({"eval", "c-1", "--dataset", "same.csv"}).out, HasSubstr("accuracy"));
  EXPECT_THAT(succeed({"eval", "c-1", "--dataset", "titled.csv", "--label-column", "animal"}).out,
              HasSubstr("accuracy"));
  EXPECT_THAT(succeed({"describe", "c-1"}).out, AllOf(HasSubstr("rows of 2 values, batch 2\n"), HasSubstr("[2, 2]")));
  EXPECT_THAT(fail({"eval", "c-1", "--dataset", "other.csv"}, 2),
              HasSubstr("was trained on classes cat, dog; other.csv has cow, dog"));
}

TEST_F(Predict, APng) {
  write_png(folder / "digit.png");
  const auto json = predict({"digit.png"});
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["top"].size(), 3U);
  EXPECT_EQ(json[0]["top"][0]["label"], json[0]["label"]);
  EXPECT_THAT(succeed({"predict", "m-1", "digit.png"}).out, AllOf(HasSubstr("digit.png"), HasSubstr("%")));
}

TEST_F(Predict, IdxAndNpzGiveTheSameAsThePng) {
  write_png(folder / "digit.png");
  const Bytes pixels = ramp(kSide * kSide);
  put_file(folder / "digit.idx", gzip(make_idx({1, kSide, kSide}, pixels)));
  put_file(folder / "digit.npz", make_zip({{"images.npy", make_npy(npy_dict("|u1", "(1, 28, 28)"), pixels), 8}}));
  const auto json = predict({"digit.png", "digit.idx", "digit.npz"});
  ASSERT_EQ(json.size(), 3U);
  EXPECT_EQ(json[0]["top"], json[1]["top"]);
  EXPECT_EQ(json[0]["top"], json[2]["top"]);
}

TEST_F(Predict, PicturesOfOtherSizesAndAJpeg) {
  write_png(folder / "large.png", 40);
  put_file(folder / "photo.jpg", make_jpeg(40, 40, ramp(40 * 40)));
  const auto json = predict({"large.png", "photo.jpg"});
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["label"], json[1]["label"]);
  EXPECT_NEAR(json[0]["probability"].get<double>(), json[1]["probability"].get<double>(), 0.05);
}

TEST_F(Predict, RowsOfACsvFileWithAndWithoutLabels) {
  std::string text = "p,q,kind\n";
  for (int i = 0; i < 60; ++i) text += i % 2 == 0 ? "1,2.5,cat\n" : "2.5,1,dog\n";
  put_file(folder / "pets.csv", Bytes(text.begin(), text.end()));
  (void)succeed({"train", "lr", "--dataset", "pets.csv", "--batch", "5", "--epochs", "10", "--name", "c"});
  const std::string out = succeed({"predict", "c-1", "pets.csv"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("example"), HasSubstr("label"), HasSubstr("60 of 60 examples right"),
                         Not(HasSubstr("image"))));
  EXPECT_THAT(succeed({"predict", "c-1", "--test", "3"}).out,
              AllOf(HasSubstr("pets.csv[2]"), HasSubstr("3 of 3 test examples right"), Not(HasSubstr("seen as"))));
  const std::string plain = "2.4,1.1\n";
  put_file(folder / "one.csv", Bytes(plain.begin(), plain.end()));
  EXPECT_THAT(succeed({"predict", "c-1", "one.csv"}).out, AllOf(HasSubstr("dog"), Not(HasSubstr("right"))));
  EXPECT_THAT(fail({"predict", "m-1", "one.csv"}, 1),
              HasSubstr("1 value per row and labels from column 2; the model takes 784"));
}

TEST_F(Predict, ManyImagesInOneFile) {
  put_file(folder / "many.idx", make_idx({300, kSide, kSide}, ramp(300 * kSide * kSide)));
  EXPECT_EQ(predict({"many.idx"}).size(), 300U);
}

TEST_F(Predict, TestImagesAreShownWithTheTruth) {
  const std::string out = succeed({"predict", "m-1", "--test", "2"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("seen as"), HasSubstr("it is"), HasSubstr("of 2 test images right")));
  const auto json = predict({"--test", "3"});
  ASSERT_EQ(json.size(), 3U);
  EXPECT_TRUE(json[0].contains("true_label"));
}

TEST_F(Predict, MistakesAreOnlyThose) {
  for (const auto& image : predict({"--test", "5", "--mistakes"})) EXPECT_NE(image["label"], image["true_label"]);
}

TEST_F(Predict, BadImagesAreNamed) {
  write_png(folder / "large.png", 40);
  EXPECT_THAT(fail({"predict", "m-1", "large.png", "--resize", "off"}, 1),
              AllOf(HasSubstr("large.png"), HasSubstr("40")));
  EXPECT_THAT(fail({"predict", "m-1", "large.png", "--resize", "fit"}, 2), HasSubstr("pad, crop, stretch, off"));
  EXPECT_THAT(fail({"predict", "m-1", "absent.png"}, 1), HasSubstr("absent.png"));
  put_file(folder / "text.png", Bytes{'h', 'e', 'l', 'l', 'o'});
  EXPECT_THAT(fail({"predict", "m-1", "text.png"}, 1), HasSubstr("text.png"));
}

}  // namespace
}  // namespace lockstep::testing
