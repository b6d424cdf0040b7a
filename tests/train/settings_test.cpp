#include "settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/cpu_quota.h"
#include "base/temp_dir.h"
#include "lockstep/error.h"
#include "settings/configuration.h"
#include "settings/machine.h"

namespace lockstep::train {
namespace {

using lockstep::testing::message_of;
using lockstep::testing::put_file;
using lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string yaml_error(const std::string& yaml) {
  return message_of<UsageError>([&] { settings::Configuration().parse_yaml(yaml, "my.yaml"); });
}

std::string flag_error(const std::string& name, const std::string& text) {
  return message_of<UsageError>([&] { settings::Configuration().set(name, text); });
}

settings::Settings resolve(const std::string& yaml, const std::vector<std::pair<std::string, std::string>>& flags) {
  settings::Configuration configuration;
  configuration.parse_yaml(yaml, "my.yaml");
  for (const auto& [name, text] : flags) configuration.set(name, text);
  return configuration.resolve();
}

std::string resolve_error(const std::vector<std::pair<std::string, std::string>>& flags) {
  return message_of<UsageError>([&] { resolve("", flags); });
}

TEST(SettingsTable, NamesEverySettingOnceAndExplainsIt) {
  std::set<std::string_view> names;
  for (const settings::SettingDef& def : settings::settings_table()) {
    EXPECT_TRUE(names.insert(def.name).second) << def.name;
    EXPECT_FALSE(def.help.empty()) << def.name;
    EXPECT_FALSE(def.group.empty()) << def.name;
    EXPECT_FALSE(settings::allowed_text(def).empty()) << def.name;
  }
}

TEST(SettingsTable, DefaultsAreAllowedValues) {
  for (const settings::SettingDef& def : settings::settings_table()) {
    settings::Settings settings;
    const std::string text = settings::value_text(settings::Settings{}, def);
    EXPECT_NO_THROW(settings::assign(settings, def, text, "test")) << def.name << " " << text;
    EXPECT_EQ(settings::value_text(settings, def), text) << def.name;
  }
}

TEST(SettingsTable, FindsNamesWithHyphensOrUnderscores) {
  ASSERT_NE(settings::find_setting("eval-every"), nullptr);
  EXPECT_EQ(settings::find_setting("eval-every"), settings::find_setting("eval_every"));
  EXPECT_EQ(settings::find_setting("evalevery"), nullptr);
}

TEST(Precedence, FlagsWinOverYamlWinsOverModelWinsOverEveryone) {
  const settings::Settings nothing = resolve("", {{"model", "lenet"}});
  EXPECT_EQ(nothing.optimizer, optim::Method::adam);
  EXPECT_DOUBLE_EQ(nothing.lr, 0.001);
  EXPECT_EQ(nothing.epochs, 20);
  EXPECT_EQ(nothing.keep, 3);
  const settings::Settings file = resolve("model: lenet\nlr: 0.2\nkeep: 5\n", {});
  EXPECT_DOUBLE_EQ(file.lr, 0.2);
  EXPECT_EQ(file.keep, 5);
  const settings::Settings flags = resolve("model: lenet\nlr: 0.2\nkeep: 5\n", {{"lr", "0.3"}});
  EXPECT_DOUBLE_EQ(flags.lr, 0.3);
  EXPECT_EQ(flags.keep, 5);
  EXPECT_EQ(resolve("model: lenet\n", {{"model", "lr"}}).model, "lr");
}

TEST(Precedence, AnotherLimitReplacesTheModelsEpochsUnlessTheyWereGiven) {
  EXPECT_EQ(resolve("", {{"model", "lr"}, {"steps", "5"}}).epochs, 0);
  EXPECT_EQ(resolve("", {{"model", "lr"}, {"seconds", "5"}}).epochs, 0);
  EXPECT_EQ(resolve("", {{"model", "lr"}, {"steps", "5"}, {"epochs", "2"}}).epochs, 2);
  EXPECT_EQ(resolve("", {{"model", "lr"}, {"stop-accuracy", "0.9"}}).epochs, 20);
}

TEST(Flags, NameTheFlagTheValueAndWhatIsAllowed) {
  EXPECT_EQ(flag_error("batch", "0"), "--batch: '0' is not allowed; it takes a whole number from 1 to 10000000");
  EXPECT_EQ(flag_error("lr", "fast"), "--lr: 'fast' is not allowed; it takes a number above 0 to 1000000");
  EXPECT_EQ(flag_error("lr", "nan"), "--lr: 'nan' is not allowed; it takes a number above 0 to 1000000");
  EXPECT_EQ(flag_error("lr", "0"), "--lr: '0' is not allowed; it takes a number above 0 to 1000000");
  EXPECT_EQ(flag_error("stop-accuracy", "92"), "--stop-accuracy: '92' is not allowed; it takes a number from 0 to 1");
  EXPECT_EQ(flag_error("epochs", "1.5"), "--epochs: '1.5' is not allowed; it takes a whole number from 0 to 10000000");
  EXPECT_EQ(flag_error("seed", "-1"), "--seed: '-1' is not allowed; it takes a whole number, 0 or more");
  EXPECT_EQ(flag_error("optimizer", "adma"),
            "--optimizer: 'adma' is not allowed (did you mean 'adam'?); it takes one of sgd, momentum, adam");
  EXPECT_THAT(flag_error("epochs", "99999999999999999999"), StartsWith("--epochs: '999"));
}

TEST(Flags, SuggestTheNearestNameForAnUnknownOne) {
  EXPECT_EQ(flag_error("epoch", "1"), "unknown setting 'epoch' (did you mean 'epochs'?)");
  EXPECT_THAT(flag_error("frobnicate-everything", "1"), HasSubstr("lists all"));
}

TEST(Yaml, UnknownKeysNameFileLineAndTheNearestKey) {
  EXPECT_EQ(yaml_error("model: lr\nepoch: 3\n"), "my.yaml:2:1: unknown key 'epoch' (did you mean 'epochs'?)");
  EXPECT_EQ(yaml_error("modle: lr\n"), "my.yaml:1:1: unknown key 'modle' (did you mean 'model'?)");
  EXPECT_THAT(yaml_error("model: lr\n\n\n  eval_evry: 3\n"), StartsWith("my.yaml:"));
}

TEST(Yaml, WrongTypesAndRangesNameFileLineKeyAndWhatIsAllowed) {
  EXPECT_EQ(yaml_error("model: lr\nbatch: many\n"),
            "my.yaml:2:1: batch: 'many' is not allowed; it takes a whole number from 1 to 10000000");
  EXPECT_EQ(yaml_error("batch: 0\n"),
            "my.yaml:1:1: batch: '0' is not allowed; it takes a whole number from 1 to 10000000");
  EXPECT_EQ(yaml_error("batch: [1, 2]\n"), "my.yaml:1:1: batch: is a list; it takes a whole number from 1 to 10000000");
  EXPECT_EQ(yaml_error("lr: {value: 1}\n"), "my.yaml:1:1: lr: is a map; it takes a number above 0 to 1000000");
  EXPECT_EQ(yaml_error("lr:\n"), "my.yaml:1:1: lr: has no value; it takes a number above 0 to 1000000");
  EXPECT_EQ(yaml_error("nesterov: maybe\n"), "my.yaml:1:1: nesterov: 'maybe' is not allowed; it takes true or false");
}

TEST(Yaml, RepeatedKeysAreRefusedInEitherSpelling) {
  EXPECT_EQ(yaml_error("lr: 1\nlr: 2\n"), "my.yaml:2:1: key 'lr' is repeated");
  EXPECT_EQ(yaml_error("eval-every: 1\neval_every: 2\n"), "my.yaml:2:1: eval-every: is given twice");
  EXPECT_THAT(yaml_error("options: {pool: avg, pool: max}\n"), HasSubstr("'pool' is repeated"));
}

TEST(Yaml, SyntaxErrorsNameFileLineAndColumn) {
  EXPECT_THAT(yaml_error("lr: [1, 2\nbatch: 3"), AllOf(StartsWith("my.yaml:"), HasSubstr("not valid YAML")));
  EXPECT_THAT(yaml_error("a: b: c\n"), StartsWith("my.yaml:1:5: not valid YAML"));
  EXPECT_THAT(yaml_error("- lr\n- batch\n"), HasSubstr("must hold settings"));
  EXPECT_THAT(yaml_error("just text"), HasSubstr("must hold settings"));
  EXPECT_THAT(yaml_error("lr: 1\n---\nlr: 2\n"), HasSubstr("content after the end"));
  EXPECT_THAT(yaml_error(", x: [1]}\n"), HasSubstr("content after the end")) << "LoadAll would not return";
  EXPECT_THAT(yaml_error("{a: 1}: 2\n"), HasSubstr("a key must be plain text"));
}

TEST(Yaml, WhatBelongsToOneCallIsForTheCommandLine) {
  EXPECT_THAT(yaml_error("resume: lr-1\n"), HasSubstr("'resume' is for the command line only"));
}

TEST(Yaml, EmptyFilesAndCommentsAreFine) {
  EXPECT_EQ(resolve("", {{"model", "lr"}}).model, "lr");
  EXPECT_EQ(resolve("# nothing\n", {{"model", "lr"}}).model, "lr");
}

TEST(Yaml, OptionsAreAMapOrTextAndFlagsAddToThem) {
  const settings::Settings settings = resolve("model: lenet\noptions: {pool: avg}\n", {{"options", "activation=tanh"}});
  EXPECT_EQ(settings.options, (settings::Options{{"activation", "tanh"}, {"pool", "avg"}}));
  EXPECT_EQ(resolve("model: lenet\noptions: pool=avg\n", {}).options.at("pool"), "avg");
  EXPECT_EQ(resolve("model: lenet\noptions: {pool: avg}\n", {{"options", "pool=max"}}).options.at("pool"), "max");
}

TEST(Options, ListsInAValueKeepTheirCommas) {
  settings::Settings settings;
  settings::assign(settings, *settings::find_setting("options"), "hidden=400,200,kind=plain", "test");
  EXPECT_EQ(settings.options, (settings::Options{{"hidden", "400,200"}, {"kind", "plain"}}));
  EXPECT_EQ(settings::value_text(settings, *settings::find_setting("options")), "hidden=400,200,kind=plain");
}

TEST(Resolve, ExplainsWhatIsMissingOrContradictory) {
  EXPECT_THAT(resolve_error({}), HasSubstr("no model given"));
  EXPECT_THAT(resolve_error({{"model", "lenot"}}), HasSubstr("did you mean 'lenet'?"));
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"options", "pool=avg"}}), HasSubstr("no option 'pool'"));
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"nesterov", "true"}}), HasSubstr("needs optimizer momentum"));
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"schedule", "step"}}), HasSubstr("needs decay-steps"));
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"schedule", "cosine"}, {"seconds", "3"}}), HasSubstr("decay-steps"));
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"eval-split", "validation"}}), HasSubstr("holdout"));
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"epochs", "0"}}), HasSubstr("nothing ends the training"));
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"checkpoint", "x"}}), HasSubstr("only used with resume"));
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"shuffle", "some"}}), HasSubstr("some"));
}

TEST(Resolve, ADataSetIsANameOrAPath) {
  for (const char* dataset : {"images", "my.csv", "data/my.npz", "./x"}) {
    EXPECT_EQ(resolve("model: lr\n", {{"dataset", dataset}}).dataset, dataset);
  }
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"dataset", "mnits"}}),
              AllOf(StartsWith("--dataset: 'mnits' is not allowed (did you mean 'mnist'?); it takes one of mnist, "),
                    HasSubstr(", or the path of a .npz or .csv file")));
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"data-scale", "0"}}), HasSubstr("a number above 0 to 100"));
  EXPECT_EQ(resolve("model: lr\n", {{"dataset", "my.npz"}, {"eval-split", "validation"}}).eval_split,
            settings::EvalSplit::validation);
}

TEST(Resolve, ContradictionsNameTheFlagOrTheFileAndLine) {
  const auto error = [](const std::string& yaml) { return message_of<UsageError>([&] { resolve(yaml, {}); }); };
  EXPECT_THAT(error("model: lr\nnesterov: true\n"), StartsWith("my.yaml:2:1: nesterov: optimizer is 'sgd'"));
  EXPECT_THAT(error("model: lr\nschedule: step\n"), StartsWith("my.yaml:2:1: schedule: 'step' needs"));
  EXPECT_THAT(error("model: lr\nshuffle: some\n"), StartsWith("my.yaml:2:1: shuffle: "));
  EXPECT_THAT(resolve_error({{"model", "lr"}, {"nesterov", "true"}}), StartsWith("--nesterov: "));
}

TEST(ToYaml, ReadsBackAsTheSameSettings) {
  settings::Configuration first;
  first.parse_yaml(
      "model: lenet\nname: \"odd: name #1\"\ndata: \"/tmp/a b\"\nstop_loss: 0.35\nlr: 0.1\nbackend: \"null\"\n"
      "options: {pool: avg}\nschedule: cosine\nseed: 18446744073709551615\nshuffle: \"10000\"\nnesterov: off\n",
      "a.yaml");
  const std::string yaml = settings::to_yaml(first.resolve());
  settings::Configuration second;
  second.parse_yaml(yaml, "b.yaml");
  EXPECT_EQ(settings::to_yaml(second.resolve()), yaml);
  EXPECT_EQ(second.resolve().name, "odd: name #1");
  EXPECT_EQ(second.resolve().seed, UINT64_MAX);
  EXPECT_EQ(second.resolve().stop_loss, 0.35);
  EXPECT_EQ(second.resolve().backend, "null");
}

/// Checks that the names of a choice are in the order of its enum.
TEST(Choices, AreWhatTheirNamesSay) {
  const auto set = [](const char* name, const char* text) {
    settings::Settings settings;
    assign(settings, *settings::find_setting(name), text, name);
    EXPECT_EQ(value_text(settings, name), text);
    return settings;
  };
  EXPECT_EQ(set("pixels", "standard").pixels, settings::PixelValues::standard);
  EXPECT_EQ(set("generate", "once").generate, settings::Generate::once);
  EXPECT_EQ(set("optimizer", "adam").optimizer, optim::Method::adam);
  EXPECT_EQ(set("schedule", "polynomial").schedule, optim::Schedule::Kind::polynomial);
  EXPECT_EQ(set("eval-split", "validation").eval_split, settings::EvalSplit::validation);
  EXPECT_EQ(set("wait-policy", "spin").wait_policy, settings::IdleThreads::spin);
  EXPECT_EQ(set("wait-policy", "block").wait_policy, settings::IdleThreads::block);
  EXPECT_EQ(set("precision", "bf16").precision, settings::Precision::bf16);
  EXPECT_EQ(set("strategy", "ps").strategy, settings::Strategy::parameter_servers);
  EXPECT_EQ(set("strategy", "allreduce").strategy, settings::Strategy::all_reduce);
  EXPECT_EQ(set("collective", "inprocess").collective, settings::Engine::in_process);
  EXPECT_EQ(set("collective", "mpi").collective, settings::Engine::mpi);
  EXPECT_EQ(set("collective", "gloo").collective, settings::Engine::gloo);
  EXPECT_EQ(set("mode", "async").mode, settings::Mode::async);
  EXPECT_EQ(set("reduce", "sum").reduce, settings::Reduce::sum);
  EXPECT_EQ(set("apply", "lock-free").apply, settings::Apply::lock_free);
  EXPECT_EQ(set("evaluate", "all").evaluate, settings::WhoEvaluates::all);
  EXPECT_EQ(set("shard", "none").shard, settings::Sharding::none);
  EXPECT_EQ(set("placement", "round-robin").placement, settings::Placement::round_robin);
  EXPECT_EQ(set("wire", "bf16").wire, settings::WireElement::bf16);
  EXPECT_EQ(set("wire", "f16").wire, settings::WireElement::f16);
  EXPECT_EQ(set("durability", "machine").durability, settings::Durability::machine);
  EXPECT_EQ(set("durability", "checkpoint").durability, settings::Durability::checkpoint);
  EXPECT_EQ(set("report", "json").report, settings::ReportForm::json);
}

TEST(Configuration, FlagsThatContradictEachOtherAreAnError) {
  settings::Configuration flags;
  flags.parse_yaml("model: lr\nmode: sync", "my.yaml");
  flags.set("mode", "async", "--async");  // a flag over the file is no contradiction
  EXPECT_NO_THROW(flags.set("mode", "async"));
  EXPECT_EQ(flags.resolve().mode, settings::Mode::async);
  EXPECT_EQ(message_of<UsageError>([&] { flags.set("mode", "sync", "--sync"); }),
            "--sync: contradicts --mode async; give one of them");
  settings::Configuration other;
  other.set("mode", "sync", "--sync");
  EXPECT_EQ(message_of<UsageError>([&] { other.set("mode", "async", "--async"); }),
            "--async: contradicts --sync; give one of them");
  other.set("lr", "0.1");
  EXPECT_NO_THROW(other.set("lr", "0.2")) << "the same flag again: the later wins";
}

TEST(LoadYaml, NamesAFileThatCannotBeRead) {
  const TempDir dir;
  EXPECT_THAT(message_of<IoError>([&] { settings::Configuration().load_yaml(dir / "none.yaml"); }),
              HasSubstr("none.yaml"));
  const std::vector<uint8_t> large((1 << 20) + 1, ' ');
  put_file(dir / "large.yaml", large);
  EXPECT_THAT(message_of<IoError>([&] { settings::Configuration().load_yaml(dir / "large.yaml"); }),
              HasSubstr("large.yaml"));
}

TEST(WaitPolicy, CountsTheThreadsOfAllReplicas) {
  settings::Settings settings;
  const auto policy = [&](int64_t replicas, int64_t threads) {
    settings.replicas = replicas;
    settings.threads = threads;
    return settings::wait_policy(settings);
  };
  const int cores = base::useful_threads();
  EXPECT_EQ(policy(1, cores), base::WaitPolicy::brief);
  EXPECT_EQ(policy(2, cores), base::WaitPolicy::block);
  EXPECT_EQ(policy(cores, 0), base::WaitPolicy::brief) << "they share the cores";
  EXPECT_EQ(policy(cores + 1, 0), base::WaitPolicy::block);
}

}  // namespace
}  // namespace lockstep::train
