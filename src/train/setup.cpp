#include "train/setup.h"

#include <fmt/format.h>

#include <algorithm>

#include "settings/machine.h"
#include "train/samples.h"

namespace lockstep::train {
namespace {

constexpr uint64_t kMostSteps = 1'000'000'000'000'000;  ///< largest decay-steps

Shape image_of(const data::Dataset& dataset) {
  const data::ImageShape& shape = dataset.shape();
  return {shape.channels, shape.height, shape.width};
}

data::LoaderOptions loader_options(const settings::Settings& settings, const data::PixelScaling& pixels,
                                   const checkpoint::TrainingState& state, const Together* together,
                                   base::TraceTrack* trace) {
  data::LoaderOptions options;
  if (trace != nullptr) options.trace = &trace->tracer().track(fmt::format("data ({})", trace->name()));
  options.pixels = &pixels;
  options.batch = settings.batch;
  options.shuffle = data::Shuffle::parse(settings.shuffle);
  options.seed = settings.seed + (together == nullptr ? 0 : together->seed_of_order);
  options.steps_per_epoch = settings.steps_per_epoch * settings.accumulate;
  options.repeat = settings.repeat;
  options.start = state.data;
  // Epochs of a fixed length end with an update, so every earlier update took as many batches.
  options.rounds_done =
      static_cast<int64_t>(std::min(state.step, kMostSteps / static_cast<uint64_t>(settings.accumulate))) *
      settings.accumulate;
  return options;
}

uint64_t parts_of(uint64_t count, int64_t size) {
  const auto each = static_cast<uint64_t>(size);
  return (count + each - 1) / each;
}

/// Returns the number of updates per pass.
uint64_t batches_per_pass(const settings::Settings& settings, const data::Dataset& dataset, int64_t together) {
  return parts_of(static_cast<uint64_t>(dataset.train.count()), settings.batch * together);
}

uint64_t count_steps_per_epoch(const settings::Settings& settings, const data::Dataset& dataset, int64_t together) {
  if (settings.steps_per_epoch > 0) return static_cast<uint64_t>(settings.steps_per_epoch);
  return parts_of(batches_per_pass(settings, dataset, together), settings.accumulate);
}

/// Returns the updates until the data runs out; 0: never.
uint64_t count_steps_of_data(const settings::Settings& settings, const data::Dataset& dataset, int64_t together) {
  const uint64_t batches = std::max<uint64_t>(batches_per_pass(settings, dataset, together), 1);
  const uint64_t passes = std::min(static_cast<uint64_t>(settings.repeat), kMostSteps / batches);
  // An update ends with its epoch; if an epoch is not a pass, the update may continue into the next pass.
  if (settings.steps_per_epoch > 0) return parts_of(passes * batches, settings.accumulate);
  return passes * parts_of(batches, settings.accumulate);
}

/// Returns the first of several ends; 0 is none.
uint64_t first_end(std::initializer_list<uint64_t> ends) {
  uint64_t first = 0;
  for (const uint64_t end : ends) {
    if (end > 0) first = first == 0 ? end : std::min(first, end);
  }
  return first;
}

uint64_t count_total_steps(const settings::Settings& settings, const data::Dataset& dataset, int64_t together) {
  const uint64_t by_epochs =
      static_cast<uint64_t>(settings.epochs) * count_steps_per_epoch(settings, dataset, together);
  return first_end(
      {by_epochs, static_cast<uint64_t>(settings.steps), count_steps_of_data(settings, dataset, together)});
}

/// Returns the updates that the data left of the first `passes` passes is enough for.
uint64_t count_steps_left(const data::Plan& plan, uint64_t passes, int64_t accumulate, bool ends_with_pass) {
  const int64_t round = plan.batch * plan.shard.count;
  uint64_t updates = 0;
  uint64_t rounds = 0;
  const auto add = [&](int64_t examples, uint64_t times) {
    const uint64_t each = parts_of(static_cast<uint64_t>(examples), round);
    rounds += times * each;
    updates += times * parts_of(each, accumulate);
  };
  for (const data::PassPart& part : plan.data.parts) {
    if (static_cast<uint64_t>(part.pass) < passes) add(part.size(), 1);
  }
  const auto next = static_cast<uint64_t>(plan.data.next_pass);
  if (next < passes) add(plan.examples, std::min(passes - next, kMostSteps / static_cast<uint64_t>(plan.examples)));
  return ends_with_pass ? updates : parts_of(rounds, accumulate);
}

/// Returns the settings with the end of the schedule as a number, which stays when the run is resumed with another end.
settings::Settings with_schedule_end(settings::Settings settings, const data::Dataset& dataset, int64_t together) {
  if (settings.decay_steps > 0 || !settings::decays_to_the_end(settings)) return settings;
  const auto total = static_cast<int64_t>(std::min(count_total_steps(settings, dataset, together), kMostSteps));
  settings.decay_steps = std::max<int64_t>(total - settings.warmup_steps, 1);
  return settings;
}

/// Returns the data's own scaling, or computes it from the available examples.
data::PixelScaling scaling_of(const settings::Settings& settings, const data::Dataset& dataset) {
  if (settings.pixels != settings::PixelValues::standard) return {};
  return dataset.pixels ? *dataset.pixels : data::standardise(dataset.train);
}

bool accumulates(const settings::Settings& settings, const Together* together) {
  return settings.accumulate > 1 || (together != nullptr && together->most_batches_per_step > 1);
}

void copy_into(std::span<const float> from, std::span<float> to) { std::copy(from.begin(), from.end(), to.begin()); }

}  // namespace

Setup::Setup(const settings::Settings& settings, const nn::ModelDef& model, data::Dataset dataset,
             const checkpoint::Checkpoint* checkpoint, const Together* together, base::TraceTrack* trace)
    : gradients_per_update_(together == nullptr ? 1 : together->gradients_per_update),
      one_of_each_member_(together != nullptr && together->one_of_each_member),
      settings_(with_schedule_end(settings, dataset, gradients_per_update_)),
      dataset_(std::move(dataset)),
      pixels_(scaling_of(settings, dataset_)),
      threads_(settings::resolve_threads(settings)),
      trace_(trace),
      backend_(settings::make_backend(settings.backend, threads_,
                                      {.exact_conv = settings.exact_conv, .precision = settings.precision})),
      spec_{&model, nn::resolve_options(model, settings.options), image_of(dataset_), dataset_.classes()},
      state_(checkpoint == nullptr ? checkpoint::TrainingState{} : checkpoint->header.state),
      steps_per_epoch_(count_steps_per_epoch(settings, dataset_, gradients_per_update_)),
      parameters_(make_parameters(spec_, settings.seed)),
      micro_gradients_(accumulates(settings, together) ? parameters_.count() * sizeof(float) : 0),
      programs_(spec_, Purpose::training, *backend_, parameters_.values().data(),
                accumulates(settings, together) ? micro_gradients_.as<float>().data() : parameters_.gradients().data()),
      exchange_(make_exchange(together)),
      loader_(trained_split(), loader_options(settings, pixels_, restore(checkpoint), together, trace)),
      evaluator_(spec_, *backend_, parameters_.values().data(), evaluated_split(), settings.eval_batch, &pixels_) {}

const data::Examples& Setup::trained_split() {
  check_fit();
  programs_.for_batch(settings_.batch);
  return dataset_.train;
}

const data::Examples& Setup::evaluated_split() const {
  return settings_.eval_split == settings::EvalSplit::validation ? dataset_.validation : dataset_.test;
}

std::unique_ptr<Hooks> Setup::picture_writer(const std::string& folder, PictureSink sink) const {
  if (traits().picture.empty() || !can_be_shown(dataset_.shape())) return nullptr;
  return std::make_unique<PictureWriter>(spec_, *backend_, parameters_.values().data(), evaluated_split(), pixels_,
                                         folder, std::move(sink));
}

std::unique_ptr<Hooks> Setup::sample_writer(PictureSink sink) const {
  if (!traits().accuracy || evaluated_split().labels.empty() || !can_be_shown(dataset_.shape())) return nullptr;
  return std::make_unique<SampleWriter>(spec_, *backend_, parameters_.values().data(), evaluated_split(), pixels_,
                                        dataset_.class_names, std::move(sink));
}

void Setup::check_fit() const {
  if (traits().labels && dataset_.train.labels.empty()) {
    throw UsageError(fmt::format("model '{}' learns from labels; {} has none", spec_.model->name, dataset_.name));
  }
  if (!traits().accuracy && settings_.stop_accuracy) {
    throw UsageError(fmt::format("stop-accuracy: model '{}' has no accuracy; use stop-loss", spec_.model->name));
  }
}

void Setup::check_match(const checkpoint::CheckpointHeader& header) {
  const checkpoint::CheckpointHeader ours = this->header();
  const auto reject = [](const std::string& what, const std::string& seen, const std::string& expected) {
    throw DataError(fmt::format("the checkpoint has {} {}, this run has {}", what, seen, expected));
  };
  if (header.model != ours.model) reject("model", header.model, ours.model);
  if (header.optimizer != ours.optimizer) reject("optimizer", header.optimizer, ours.optimizer);
  if (header.image != ours.image) reject("images", header.image.str(), ours.image.str());
  if (header.classes != ours.classes) reject("classes", std::to_string(header.classes), std::to_string(ours.classes));
  if (header.train_examples != ours.train_examples) {
    reject("training examples", std::to_string(header.train_examples), std::to_string(ours.train_examples));
  }
  if (header.slots != ours.slots) {
    reject("optimizer state", fmt::format("{}", fmt::join(header.slots, ", ")),
           fmt::format("{}", fmt::join(ours.slots, ", ")));
  }
  const size_t count = std::min(header.parameters.size(), ours.parameters.size());
  for (size_t i = 0; i < count; ++i) {
    const checkpoint::ParameterEntry& seen = header.parameters[i];
    const checkpoint::ParameterEntry& expected = ours.parameters[i];
    if (seen == expected) continue;
    reject("parameter", seen.name + " " + seen.shape.str(), expected.name + " " + expected.shape.str());
  }
  if (header.parameters.size() != ours.parameters.size()) {
    reject("parameters", std::to_string(header.parameters.size()), std::to_string(ours.parameters.size()));
  }
}

const checkpoint::TrainingState& Setup::restore(const checkpoint::Checkpoint* checkpoint) {
  if (checkpoint == nullptr) return state_;
  check_match(checkpoint->header);
  copy_into(checkpoint->parameters(), parameters_.values());
  const std::vector<optim::StateSlot> slots = exchange_->state();  // none if servers hold it
  for (size_t i = 0; i < slots.size(); ++i) copy_into(checkpoint->slot(i), slots[i].values);
  return state_;
}

std::vector<float> Setup::first_parameters() const {
  program::ParameterStore fresh = make_parameters(spec_, settings_.seed);
  return {fresh.values().begin(), fresh.values().end()};
}

std::unique_ptr<exchange::Exchange> Setup::make_exchange(const Together* together) {
  if (together != nullptr) return together->exchange(parameters_, exchange_options());
  return std::make_unique<exchange::LocalExchange>(parameters_, exchange_options());
}

exchange::LocalOptions Setup::exchange_options() const {
  const settings::Settings& s = settings_;
  exchange::LocalOptions options;
  options.optimizer = {s.optimizer,
                       static_cast<float>(s.momentum),
                       s.nesterov,
                       s.beta1,
                       s.beta2,
                       static_cast<float>(s.eps),
                       static_cast<float>(s.weight_decay)};
  options.schedule.kind = s.schedule;
  options.schedule.base = static_cast<float>(s.lr);
  options.schedule.end = static_cast<float>(s.lr_end);
  options.schedule.decay_rate = static_cast<float>(s.decay_rate);
  options.schedule.power = static_cast<float>(s.power);
  options.schedule.warmup_steps = static_cast<uint64_t>(s.warmup_steps);
  options.schedule.decay_steps = static_cast<uint64_t>(std::max<int64_t>(s.decay_steps, 1));
  options.clip_norm = static_cast<float>(s.clip_norm);
  options.threads = threads_;
  return options;
}

Parts Setup::parts() {
  Parts parts;
  parts.parameters = &parameters_;
  parts.programs = &programs_;
  if (micro_gradients_.size() > 0) parts.micro_gradients = micro_gradients_.as<float>().first(parameters_.count());
  parts.exchange = exchange_.get();
  parts.loader = &loader_;
  parts.evaluator = &evaluator_;
  parts.trace = trace_;
  return parts;
}

TrainerOptions Setup::trainer_options() const {
  TrainerOptions options;
  options.stop = StopRules::from(settings_);
  options.seed = settings_.seed;
  options.accumulate = settings_.accumulate;
  options.eval_every = static_cast<uint64_t>(settings_.eval_every);
  options.checkpoint_every = static_cast<uint64_t>(settings_.checkpoint_every);
  options.threads = threads_;
  options.total_steps = total_steps();
  if (one_of_each_member_) {
    options.total_of_plan = [this](const data::Plan& plan, uint64_t step) { return total_steps(plan, step); };
  }
  options.epoch_is_pass = settings_.steps_per_epoch == 0;
  return options;
}

uint64_t Setup::total_steps() const { return count_total_steps(settings_, dataset_, gradients_per_update_); }

uint64_t Setup::total_steps(const data::Plan& plan, uint64_t step) const {
  const bool by_pass = settings_.steps_per_epoch == 0;
  const auto epochs = static_cast<uint64_t>(settings_.epochs);
  const auto repeat = static_cast<uint64_t>(settings_.repeat);
  const uint64_t passes = by_pass ? first_end({epochs, repeat}) : repeat;
  const uint64_t of_data = passes == 0 ? 0 : step + count_steps_left(plan, passes, settings_.accumulate, by_pass);
  const uint64_t by_epochs = by_pass ? 0 : epochs * steps_per_epoch_;
  return first_end({by_epochs, static_cast<uint64_t>(settings_.steps), of_data});
}

checkpoint::CheckpointHeader Setup::header() {
  checkpoint::CheckpointHeader header;
  header.model = spec_.model->name;
  header.options = spec_.options;
  header.image = spec_.image;
  header.classes = spec_.classes;
  header.train_examples = dataset_.train.count();
  header.class_names = dataset_.class_names;
  header.parameters = checkpoint::parameter_entries(parameters_.infos());
  header.optimizer = optim::name(settings_.optimizer);
  header.slots = exchange_->slot_names();
  for (const settings::SettingDef& def : settings::settings_table()) {
    if (def.keep != settings::Keep::call_only)
      header.settings[std::string(def.name)] = settings::value_text(settings_, def);
  }
  header.version = settings::program_version();
  return header;
}

void check_settings_match(const checkpoint::CheckpointHeader& header, const settings::Settings& settings,
                          const std::string& file) {
  for (const settings::SettingDef& def : settings::settings_table()) {
    const auto found = header.settings.find(std::string(def.name));
    if (def.keep != settings::Keep::fixed || found == header.settings.end()) continue;
    // follows from global-batch and the number of workers
    if (def.name == "batch" && settings.global_batch > 0) continue;
    const std::string now = settings::value_text(settings, def);
    if (found->second == now) continue;
    throw UsageError(fmt::format("{}: '{}' cannot resume from checkpoint {}, which was made with '{}'", def.name, now,
                                 file, found->second));
  }
}

}  // namespace lockstep::train
