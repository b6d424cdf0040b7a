#include "checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <csignal>
#include <cstring>

#include "base/temp_dir.h"
#include "checkpoint/checkpoint_store.h"
#include "lockstep/error.h"

namespace lockstep::train {
namespace {

using lockstep::testing::get_file;
using lockstep::testing::message_of;
using lockstep::testing::put_file;
using lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

checkpoint::CheckpointHeader sample_header(uint64_t step = 120) {
  checkpoint::CheckpointHeader header;
  header.model = "lr";
  header.options = {{"pool", "avg"}};
  header.image = {1, 28, 28};
  header.classes = 10;
  header.train_examples = 60000;
  header.class_names = {"zero", "one"};
  header.parameters = {{"softmax/weights", {2, 3}}, {"softmax/bias", {3}}};
  header.optimizer = "adam";
  header.slots = {"first_moment", "second_moment"};
  header.settings = {{"batch", "128"}, {"model", "lr"}};
  header.state.step = step;
  header.state.examples = 15360;
  header.state.epochs = 3;
  header.state.data = {{{3, {{128, 256}, {900, 60000}}}, {5, {{0, 59999}}}}, 6};
  header.state.seconds = 1.0 / 3.0;
  header.state.aside_seconds = 1.0 / 7.0;
  header.state.epoch_loss_sum = 0.1 + 0.2;
  header.state.epoch_correct = 11;
  header.state.epoch_examples = 12;
  header.state.epoch_loss = 1e-300;
  header.state.epoch_accuracy = 0.5;
  header.state.last_eval = checkpoint::EvalRecord{step, 3, 0.7, 0.9, 10000};
  header.state.best_eval = checkpoint::EvalRecord{60, 2, 0.6, 0.91, 10000};
  header.version = "0.1.0";
  return header;
}

std::vector<float> sample_values(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) * 0.37F - 1.5F;
  return values;
}

/// Three arrays of nine values: the parameters and two slots.
const std::vector<float> kValues = sample_values(27);

std::vector<std::span<const float>> sample_arrays() {
  const std::span all(kValues);
  return {all.subspan(0, 9), all.subspan(9, 9), all.subspan(18, 9)};
}

std::vector<uint8_t> sample_file() {
  const TempDir dir;
  checkpoint::write_checkpoint(dir / "a.ckpt", sample_header(), sample_arrays());
  const std::string content = get_file(dir / "a.ckpt");
  return {content.begin(), content.end()};
}

std::string parse_error(std::span<const uint8_t> file) {
  return message_of<DataError>([&] { checkpoint::parse_checkpoint(file, "x.ckpt"); });
}

/// Makes the checksum valid, so that the checks behind it are tested.
std::vector<uint8_t> with_right_checksum(std::vector<uint8_t> file) {
  const auto sum = static_cast<uint32_t>(crc32_z(0, file.data(), file.size() - 4));
  std::memcpy(file.data() + file.size() - 4, &sum, 4);
  return file;
}

/// Returns the sample file with another header text.
std::vector<uint8_t> with_header(const std::string& json) {
  std::vector<uint8_t> file = sample_file();
  uint32_t old_bytes = 0;
  std::memcpy(&old_bytes, file.data() + 12, 4);
  file.erase(file.begin() + 24, file.begin() + 24 + old_bytes);
  file.insert(file.begin() + 24, json.begin(), json.end());
  const auto bytes = static_cast<uint32_t>(json.size());
  std::memcpy(file.data() + 12, &bytes, 4);
  return with_right_checksum(file);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no '" + from + "' in " + text);
  return text.replace(at, from.size(), to);
}

TEST(Checkpoint, ReadsBackExactlyWhatWasWritten) {
  const TempDir dir;
  const size_t bytes = checkpoint::write_checkpoint(dir / "a.ckpt", sample_header(), sample_arrays());
  EXPECT_EQ(bytes, get_file(dir / "a.ckpt").size());
  EXPECT_THAT(dir.names(), ElementsAre("a.ckpt"));
  const checkpoint::Checkpoint read = checkpoint::read_checkpoint(dir / "a.ckpt");
  EXPECT_EQ(read.values, kValues);
  EXPECT_EQ(read.parameters().size(), 9U);
  EXPECT_EQ(read.slot(1).data(), read.values.data() + 18);
  EXPECT_EQ(checkpoint::header_to_json(read.header), checkpoint::header_to_json(sample_header()));
  EXPECT_EQ(read.header.state, sample_header().state);
  EXPECT_EQ(read.header.parameters, sample_header().parameters);
}

/// Returns the header of an older program, which wrote the number of a batch instead of the remaining data.
std::string header_with_position(const std::string& pass, const std::string& batch) {
  std::string json = checkpoint::header_to_json(sample_header());
  const size_t begin = json.find("\"remainder\"");
  const size_t end = json.find("]}", json.find("\"pass\":5")) + 4;
  return json.replace(begin, end - begin, fmt::format("\"pass\":{},\"batch\":{}", pass, batch));
}

TEST(Checkpoint, OlderOnesTellTheNextBatchInstead) {
  const auto left = [](const std::string& pass, const std::string& batch) {
    return checkpoint::header_from_json(header_with_position(pass, batch), "x").state.data;
  };
  EXPECT_EQ(left("3", "7"), (data::Remainder{{{3, {{7 * 128, 60000}}}}, 4}));
  EXPECT_EQ(left("3", "468"), (data::Remainder{{{3, {{468 * 128, 60000}}}}, 4}));
  EXPECT_EQ(left("3", "0"), (data::Remainder{{}, 3}));
  const auto error = [&](const std::string& pass, const std::string& batch) {
    return message_of<DataError>([&] { (void)left(pass, batch); });
  };
  EXPECT_EQ(error("3", "469"),
            "checkpoint x: header has 469 for 'state.batch', expected a batch of 60000 examples in batches of "
            "settings.batch '128'");
  EXPECT_THAT(error("-1", "4"), HasSubstr("header has -1 for 'state.pass'"));
  EXPECT_THAT(error("0", "9007199254740992"), HasSubstr("for 'state.batch'"));
}

TEST(Checkpoint, ARemainderThatMakesNoSenseIsRefusedByItsField) {
  const std::string json = checkpoint::header_to_json(sample_header());
  const auto error = [&](const std::string& from, const std::string& to) {
    return message_of<DataError>([&] { checkpoint::header_from_json(replaced(json, from, to), "x"); });
  };
  EXPECT_EQ(error("[128,256]", "[128,128]"),
            "checkpoint x: header has 128 for 'state.remainder.parts[0].ranges[0][1]', expected a whole number from "
            "129 to 60000");
  const std::string second = "'state.remainder.parts[0].ranges[1]";
  EXPECT_THAT(error("[900,60000]", "[256,60000]"), HasSubstr("has 256 for " + second + "[0]', expected a whole"));
  EXPECT_THAT(error("[900,60000]", "[100,60000]"), HasSubstr("has 100 for " + second + "[0]'"));
  EXPECT_THAT(error("[900,60000]", "[900,60001]"), HasSubstr("has 60001 for " + second + "[1]'"));
  EXPECT_THAT(error("[900,60000]", "[900,1e3]"), HasSubstr("for " + second + "[1]', expected a whole number"));
  EXPECT_THAT(error("[900,60000]", "[900]"), HasSubstr("has [900] for " + second + "', expected two ascending"));
  EXPECT_THAT(error("[900,60000]", "[900,901,902]"), HasSubstr("expected a list of at most 2"));
  EXPECT_THAT(error("[128,256]", "[128,60000]"), HasSubstr("for " + second + "', expected two ascending positions"));
  EXPECT_THAT(error("[[0,59999]]", "[]"), HasSubstr("'state.remainder.parts[1].ranges', expected at least one range"));
  EXPECT_THAT(error("[[0,59999]]", "7"), HasSubstr("'state.remainder.parts[1].ranges', expected a list"));
  EXPECT_THAT(error("\"pass\":5", "\"pass\":3"),
              HasSubstr("has 3 for 'state.remainder.parts[1].pass', expected a whole number from 4 to 5"));
  EXPECT_THAT(error("\"next_pass\":6", "\"next_pass\":5"), HasSubstr("'state.remainder.parts[1].pass'"));
  EXPECT_THAT(error("\"next_pass\":6", "\"next_pass\":4"), HasSubstr("parts[1]', expected no part of next_pass"));
  EXPECT_THAT(error("\"next_pass\":6", "\"next_pass\":-6"), HasSubstr("'state.remainder.next_pass'"));
  EXPECT_THAT(error("\"next_pass\"", "\"last_pass\""), HasSubstr("header lacks 'state.remainder.next_pass'"));
  EXPECT_THAT(error("\"remainder\"", "\"rest\""), HasSubstr("header lacks 'state.pass'"));
}

TEST(Checkpoint, EveryTruncationIsRefused) {
  const std::vector<uint8_t> file = sample_file();
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(parse_error(std::span(file).first(size)), HasSubstr("checkpoint x.ckpt: is ")) << size;
  }
  EXPECT_EQ(parse_error({}), "checkpoint x.ckpt: is empty");
  EXPECT_THAT(parse_error(std::span(file).first(20)), HasSubstr("truncated: 20 bytes, expected at least 28"));
  EXPECT_THAT(parse_error(std::span(file).first(200)), HasSubstr("truncated: 200 bytes"));
}

TEST(Checkpoint, EveryFlippedBitIsRefused) {
  std::vector<uint8_t> file = sample_file();
  for (size_t i = 0; i < file.size(); ++i) {
    file[i] ^= 0x10;
    EXPECT_THAT(parse_error(file), HasSubstr("checkpoint x.ckpt: ")) << i;
    file[i] ^= 0x10;
  }
  EXPECT_NO_THROW(checkpoint::parse_checkpoint(file, "x.ckpt"));
}

TEST(Checkpoint, SaysWhatIsWrongWithTheFirstBytes) {
  std::vector<uint8_t> file = sample_file();
  file[0] = 'X';
  EXPECT_EQ(parse_error(file), "checkpoint x.ckpt: is not a checkpoint: starts with 'XSTEPCKP', expected 'LSTEPCKP'");
  file = sample_file();
  file[8] = 2;
  EXPECT_EQ(parse_error(with_right_checksum(file)),
            "checkpoint x.ckpt: has format version 2; this program reads versions 1 to 1");
  file[8] = 0;
  EXPECT_THAT(parse_error(with_right_checksum(file)), HasSubstr("has format version 0"));
  file = sample_file();
  file[15] = 0xFF;
  EXPECT_THAT(parse_error(with_right_checksum(file)), HasSubstr("at most 67108864 are allowed"));
  file = sample_file();
  file[23] = 0xFF;
  EXPECT_THAT(parse_error(with_right_checksum(file)), HasSubstr("is truncated"));
  file = sample_file();
  file.push_back(0);
  EXPECT_THAT(parse_error(with_right_checksum(file)), HasSubstr("is damaged"));
  file = sample_file();
  file[file.size() - 1] ^= 1;
  EXPECT_THAT(parse_error(file), HasSubstr("is damaged: checksum "));
}

TEST(Checkpoint, EveryFieldOfTheHeaderIsNeeded) {
  const std::string json = checkpoint::header_to_json(sample_header());
  for (const char* field :
       {"model",          "options",   "image",          "classes",         "train_examples", "class_names",
        "parameters",     "optimizer", "slots",          "settings",        "state",          "version",
        "step",           "examples",  "epochs",         "next_pass",       "parts",          "pass",
        "ranges",         "seconds",   "epoch_loss_sum", "epoch_correct",   "epoch_examples", "epoch_loss",
        "epoch_accuracy", "last_eval", "best_eval",      "best_checkpoint", "name",           "shape"}) {
    const std::string key = "\"" + std::string(field) + "\":";
    // "model" is a setting too: rename every one.
    std::string other = json;
    for (size_t at = other.find(key); at != std::string::npos; at = other.find(key)) other[at + 1] = '_';
    EXPECT_THAT(parse_error(with_header(other)), AllOf(HasSubstr("header lacks '"), HasSubstr(field))) << field;
  }
}

TEST(Checkpoint, OlderOnesLackTheSecondsAside) {
  const std::string json = replaced(checkpoint::header_to_json(sample_header()), "\"aside_seconds\"", "\"_\"");
  EXPECT_EQ(checkpoint::header_from_json(json, "old.ckpt").state.aside_seconds, 0);
}

TEST(Checkpoint, FieldsOutOfBoundsNameTheFieldAndWhatWasSeen) {
  const std::string json = checkpoint::header_to_json(sample_header());
  const auto error = [&](const std::string& from, const std::string& to) {
    return parse_error(with_header(replaced(json, from, to)));
  };
  EXPECT_THAT(error("\"step\":120}", "\"step\":-1}"), HasSubstr("header has -1 for 'state.last_eval.step'"));
  EXPECT_THAT(error("\"step\":120}", "\"step\":1.5}"), HasSubstr("header has 1.5 for 'state.last_eval.step'"));
  EXPECT_THAT(error("\"step\":120}", "\"step\":99999999999999999999}"), HasSubstr("'state.last_eval.step'"));
  EXPECT_THAT(error("\"classes\":10", "\"classes\":0"), HasSubstr("header has 0 for 'classes', expected"));
  EXPECT_THAT(error("[1,28,28]", "[1,28]"), HasSubstr("expected three sizes"));
  EXPECT_THAT(error("[2,3]", "[2,-3]"), HasSubstr("header has -3 for 'parameters[0].shape[1]'"));
  EXPECT_THAT(error("[2,3]", "[1099511627776,1099511627776]"), HasSubstr("a shape of at most"));
  EXPECT_THAT(error("[2,3]", "[1,1,1,1,1,1,6]"), HasSubstr("a list of at most 6"));
  EXPECT_THAT(error("[2,3]", "[2,4]"), HasSubstr("expected 132 for 3 arrays of 11 values"));
  EXPECT_THAT(error("\"seconds\":", "\"seconds\":\"long\",\"was\":"), HasSubstr("'state.seconds', expected a number"));
  EXPECT_THAT(error("\"model\":\"lr\",\"opt", "\"model\":7,\"opt"), HasSubstr("'model', expected text"));
  EXPECT_THAT(parse_error(with_header("{")), HasSubstr("header: is not valid JSON"));
  EXPECT_THAT(parse_error(with_header("[]")), HasSubstr("expected a map"));
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_THAT(error("\"classes\":10", "\"classes\":" + deep), HasSubstr("header: is nested deeper than 64 levels"));
}

TEST(CheckpointStore, KeepsTheNewestAndTheBest) {
  const TempDir dir;
  checkpoint::CheckpointStore store(dir.path(), 2);
  for (const uint64_t step : {10, 20, 30, 40, 50}) {
    checkpoint::CheckpointHeader header = sample_header(step);
    header.state.best_checkpoint = checkpoint::EvalRecord{20, 1, 0.1, 0.99, 100};
    store.save(header, sample_arrays());
  }
  EXPECT_THAT(dir.names(), UnorderedElementsAre("step-000000020.ckpt", "step-000000040.ckpt", "step-000000050.ckpt"));
}

TEST(CheckpointStore, LooksOnlyAtItsOwnFiles) {
  const TempDir dir;
  checkpoint::CheckpointStore store(dir.path(), 1);
  for (const char* name : {"step-.ckpt", "step-12x.ckpt", "step-7.ckpt.tmp-1-0", "notes.txt"}) put_file(dir / name, {});
  store.save(sample_header(5), sample_arrays());
  EXPECT_EQ(store.list().size(), 1U);
  store.remove_leftovers();
  EXPECT_THAT(dir.names(), UnorderedElementsAre("step-.ckpt", "step-12x.ckpt", "notes.txt", "step-000000005.ckpt"));
  EXPECT_THAT(checkpoint::CheckpointStore(dir / "nowhere").list(), IsEmpty());
}

TEST(CheckpointStore, ADamagedNewestIsRefusedAndTheIntactOneOfferedByName) {
  const TempDir dir;
  checkpoint::CheckpointStore store(dir.path(), 5);
  for (const uint64_t step : {10, 20, 30, 40}) store.save(sample_header(step), sample_arrays());
  std::string path;
  EXPECT_EQ(store.load_newest(path).header.state.step, 40U);
  for (const uint64_t step : {30, 40}) {
    std::string content = get_file(store.path_of(step));
    content.resize(content.size() / 2);
    put_file(store.path_of(step), {reinterpret_cast<const uint8_t*>(content.data()), content.size()});
  }
  EXPECT_THAT(message_of<DataError>([&] { (void)store.load_newest(path); }),
              AllOf(HasSubstr("step-000000040.ckpt: is truncated"), HasSubstr("the checkpoint of step 20 is intact"),
                    HasSubstr("--checkpoint " + store.path_of(20))));
  store.abandon_after(20);
  EXPECT_EQ(store.load_newest(path).header.state.step, 20U);
  EXPECT_EQ(path, store.path_of(20));
}

TEST(CheckpointStore, WithNoIntactOneSaysSo) {
  const TempDir dir;
  std::string path;
  EXPECT_THAT(message_of<DataError>([&] { (void)checkpoint::CheckpointStore(dir.path()).load_newest(path); }),
              HasSubstr("no checkpoint in " + dir.path()));
  put_file(dir / "step-1.ckpt", {});
  EXPECT_THAT(message_of<DataError>([&] { (void)checkpoint::CheckpointStore(dir.path()).load_newest(path); }),
              AllOf(HasSubstr("is empty"), HasSubstr("no older one is intact")));
}

/// Limits the size of this process's files while it lives: a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(CheckpointStore, AFullDiskLeavesTheOldOnesAndNothingHalfWritten) {
  const TempDir dir;
  checkpoint::CheckpointStore store(dir.path(), 1);
  store.save(sample_header(10), sample_arrays());
  {
    const FileSizeLimit limit(300);
    EXPECT_THAT(message_of<IoError>([&] { store.save(sample_header(20), sample_arrays()); }),
                HasSubstr("step-000000020.ckpt"));
  }
  EXPECT_THAT(dir.names(), ElementsAre("step-000000010.ckpt"));
  std::string path;
  EXPECT_EQ(store.load_newest(path).header.state.step, 10U);
}

}  // namespace
}  // namespace lockstep::train
