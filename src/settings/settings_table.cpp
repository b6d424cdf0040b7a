#include <type_traits>
#include <utility>

#include "data/catalog.h"
#include "data/own_data.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "settings/machine.h"
#include "settings/settings.h"

namespace lockstep::settings {
namespace {

using S = Settings;
// Limits of counts; products of such counts stay within 64 bits.
constexpr double kMany = 1e15;
constexpr double kEpochs = 1e7;
constexpr double kEpochSteps = 1e11;
constexpr double kBatch = 1e7;

template <auto member>
EnumMember enum_member() {
  using Enum = std::remove_reference_t<decltype(std::declval<Settings&>().*member)>;
  return {[](const Settings& settings) { return static_cast<size_t>(settings.*member); },
          [](Settings& settings, size_t value) { settings.*member = static_cast<Enum>(value); }};
}

void add_generated(std::vector<SettingDef>& t) {
  t.push_back({"train-size", In::help_all, "Data", "N",
               "training examples of a generated data set; 0: the data set's default", &S::train_size, Keep::fixed, 0,
               2147483647});
  t.push_back({"test-size", In::help_all, "Data", "N",
               "test examples of a generated data set, or of own data without a test split; 0: its default, or 1/6",
               &S::test_size, Keep::fixed, 0, 2147483647});
  t.push_back({"classes", In::help_all, "Data", "N", "classes of data sets images (0: 1000) and synthetic (0: 10)",
               &S::classes, Keep::fixed, 0, 1000000});
  t.push_back({"image-size", In::help_all, "Data", "N",
               "height and width of the pictures of data set images; 0: the model's", &S::image_size, Keep::fixed, 0,
               4096});
  t.push_back({"generate",
               In::help_all,
               "Data",
               "fresh|once",
               "data set images: make each image when needed, or all at the start (0.6 MB per 3x224x224 image)",
               enum_member<&S::generate>(),
               Keep::fixed,
               0,
               0,
               false,
               false,
               {"fresh", "once"}});
  t.push_back({"data-seed", In::help_all, "Data", "N", "seed of generated data", &S::data_seed, Keep::fixed});
}

void add_what(std::vector<SettingDef>& t) {
  t.push_back({"model", In::help, "Model", "NAME",
               "model to train: a name (`lockstep models` lists them) or a model file", &S::model, Keep::fixed});
  t.push_back({"options", In::help, "Model", "KEY=VALUE", "options of the model, e.g. pool=avg; commas between several",
               &S::options, Keep::fixed});

  t.push_back({"dataset", In::help, "Data", "NAME|PATH",
               "the data set: a name (`lockstep data list`) or the path of your own data", &S::dataset, Keep::fixed, 0,
               0, false, true, data::dataset_names(), data::is_own_data, "the path of a .npz or .csv file"});
  t.push_back({"data", In::help_all, "Data", "DIR", "folder to look for the data set in first", &S::data});
  t.push_back(
      {"label-column", In::help_all, "Data", "NAME|N",
       "label column of your own CSV data: name, number or none; empty: label, class or y, else the last column",
       &S::label_column, Keep::fixed});
  t.push_back({"pixels",
               In::help_all,
               "Data",
               "unit|standard",
               "scale pixels to 0..1, or each to mean 0 and variance 1 over the training examples",
               enum_member<&S::pixels>(),
               Keep::fixed,
               0,
               0,
               false,
               true,
               {"unit", "standard"}});
  t.push_back({"batch", In::help, "Data", "N", "examples per batch", &S::batch, Keep::fixed, 1, kBatch, false, true});
  t.push_back({"accumulate", In::help_all, "Data", "N", "batches per parameter update; their gradients are averaged",
               &S::accumulate, Keep::fixed, 1, kBatch});
  t.push_back({"shuffle", In::help_all, "Data", "all|none|N",
               "order of each epoch: all, none, or the size of a shuffle buffer", &S::shuffle, Keep::fixed});
  t.push_back({"holdout", In::help_all, "Data", "N", "keep the last N training examples for validation", &S::holdout,
               Keep::fixed, 0, 1e12});
  t.push_back({"train-limit", In::help_all, "Data", "N", "use only the first N training examples; 0: all",
               &S::train_limit, Keep::fixed, 0, 1e12});
  t.push_back({"test-limit", In::help_all, "Data", "N", "use only the first N test examples; 0: all", &S::test_limit,
               Keep::fixed, 0, 1e12});
  t.push_back(
      {"data-scale", In::help_all, "Data", "X",
       "use X times the training examples: below 1 the first part (after the limits), above 1 repeated in an epoch",
       &S::data_scale, Keep::fixed, 0, 100, true});
  add_generated(t);
  t.push_back({"steps-per-epoch", In::help_all, "Data", "N", "steps per epoch; 0: an epoch is one pass over the data",
               &S::steps_per_epoch, Keep::fixed, 0, kEpochSteps});
  t.push_back({"repeat", In::help_all, "Data", "N", "passes over the data before training ends; 0: unlimited",
               &S::repeat, Keep::free, 0, kMany});
}

void add_optimizer(std::vector<SettingDef>& t) {
  const std::string_view group = "Optimizer";
  t.push_back({"optimizer", In::help, group, "NAME", "optimizer that applies gradients to the parameters",
               enum_member<&S::optimizer>(), Keep::fixed, 0, 0, false, true, optim::method_names()});
  t.push_back({"lr", In::help, group, "X", "learning rate", &S::lr, Keep::fixed, 0, 1e6, true, true});
  t.push_back(
      {"momentum", In::help_all, group, "X", "momentum of optimizer momentum", &S::momentum, Keep::fixed, 0, 0.999999});
  t.push_back({"nesterov", In::help_all, group, "", "use Nesterov momentum", &S::nesterov, Keep::fixed});
  t.push_back(
      {"beta1", In::help_all, group, "X", "Adam's decay of the first moment", &S::beta1, Keep::fixed, 0, 0.99999999});
  t.push_back(
      {"beta2", In::help_all, group, "X", "Adam's decay of the second moment", &S::beta2, Keep::fixed, 0, 0.99999999});
  t.push_back({"eps", In::help_all, group, "X", "Adam's term against division by zero", &S::eps, Keep::fixed, 0, 1});
  t.push_back({"weight-decay", In::help_all, group, "X", "L2 penalty: adds X times the parameter to its gradient",
               &S::weight_decay, Keep::fixed, 0, 1e6});
  t.push_back({"clip-norm", In::help_all, group, "X", "scale gradients down to this global norm; 0: never",
               &S::clip_norm, Keep::fixed, 0, 1e30});
  t.push_back({"schedule", In::help_all, group, "NAME", "schedule of the learning rate", enum_member<&S::schedule>(),
               Keep::fixed, 0, 0, false, false, optim::schedule_names()});
  t.push_back({"decay-steps", In::help_all, group, "N",
               "steps per decay (step, exponential), or length of the schedule (others; 0: to the end of training)",
               &S::decay_steps, Keep::fixed, 0, kMany});
  t.push_back({"decay-rate", In::help_all, group, "X", "factor per decay of schedules step and exponential",
               &S::decay_rate, Keep::fixed, 0, 1, true});
  t.push_back({"lr-end", In::help_all, group, "X", "final learning rate of schedules cosine, linear and polynomial",
               &S::lr_end, Keep::fixed, 0, 1e6});
  t.push_back(
      {"power", In::help_all, group, "X", "power of schedule polynomial", &S::power, Keep::fixed, 0, 100, true});
  t.push_back({"warmup-steps", In::help_all, group, "N", "steps at the start in which the learning rate rises to lr",
               &S::warmup_steps, Keep::fixed, 0, kMany});
}

void add_length(std::vector<SettingDef>& t) {
  const std::string_view stop = "When to stop (the first met wins)";
  t.push_back({"epochs", In::help, stop, "N", "stop after N epochs; 0: no limit", &S::epochs, Keep::free, 0, kEpochs,
               false, true});
  t.push_back(
      {"steps", In::help, stop, "N", "stop after N parameter updates; 0: no limit", &S::steps, Keep::free, 0, kMany});
  t.push_back({"seconds", In::help_all, stop, "X", "stop after X seconds of training; 0: no limit", &S::seconds,
               Keep::free, 0, 1e12});
  t.push_back({"stop-loss", In::help_all, stop, "X", "stop when the evaluated loss is at most X", &S::stop_loss,
               Keep::free, 0, 1e30});
  t.push_back({"stop-accuracy", In::help, stop, "X", "stop when the evaluated accuracy is at least X, from 0 to 1",
               &S::stop_accuracy, Keep::free, 0, 1});

  const std::string_view eval = "Evaluation and checkpoints";
  t.push_back({"eval-every", In::help_all, eval, "N",
               "evaluate every N steps and at each epoch's end; 0: only at epoch ends", &S::eval_every, Keep::free, 0,
               kMany});
  t.push_back({"eval-batch", In::help_all, eval, "N", "examples per batch of an evaluation", &S::eval_batch, Keep::free,
               1, kBatch});
  t.push_back({"eval-split",
               In::help_all,
               eval,
               "NAME",
               "split to evaluate on",
               enum_member<&S::eval_split>(),
               Keep::fixed,
               0,
               0,
               false,
               false,
               {"test", "validation"}});
  t.push_back({"checkpoint-every", In::help_all, eval, "N",
               "write a checkpoint every N steps, and for each best evaluation; 0: at each epoch's end",
               &S::checkpoint_every, Keep::free, 0, kMany});
  t.push_back({"keep", In::help_all, eval, "N", "number of checkpoints to keep, besides the best one", &S::keep,
               Keep::free, 1, 1e6});
}

void add_run(std::vector<SettingDef>& t) {
  const std::string_view run = "Run";
  t.push_back({"seed", In::help, run, "N", "seed of all random numbers", &S::seed, Keep::fixed});
  t.push_back({"name", In::help, run, "NAME",
               "name of the run, kept in <runs-dir>/<name>-<n>; default: the model's name", &S::name, Keep::fixed});
  t.push_back({"runs-dir", In::help_all, run, "DIR", "folder of all runs", &S::runs_dir});
  t.push_back({"run-dir", In::help_all, run, "DIR", "folder of this run, which must be new", &S::run_dir, Keep::fixed});
  t.push_back({"log-every", In::help_all, run, "N", "write a line to steps.csv at step 1 and every N steps; 0: none",
               &S::log_every, Keep::free, 0, kMany});
  t.push_back({"quiet", In::help, run, "", "print nothing but the result and errors", &S::quiet, Keep::call_only});
  t.push_back({"resume", In::help, run, "RUN", "resume a run (its folder or name)", &S::resume, Keep::call_only});
  t.push_back({"checkpoint", In::help_all, run, "FILE", "checkpoint of the run to resume from: a file, newest or best",
               &S::checkpoint, Keep::call_only});
}

bool whole_number_from_one(std::string_view text) {
  const bool digits = !text.empty() && text.size() <= 15 && text.find_first_not_of("0123456789") == text.npos;
  return digits && text.front() != '0';
}

void add_observation(std::vector<SettingDef>& t) {
  const std::string_view group = "Observation";
  t.push_back({"summary-every",
               In::help_all,
               group,
               "N|never",
               "write TensorBoard's scalars every N steps; never: no event files",
               &S::summary_every,
               Keep::free,
               0,
               0,
               false,
               false,
               {"never"},
               whole_number_from_one,
               "a whole number from 1"});
  t.push_back({"summary-dir", In::help_all, group, "DIR",
               "keep event files in DIR/<run>/<role> instead of with the run", &S::summary_dir, Keep::free});
  t.push_back({"histograms-every", In::help_all, group, "N",
               "write histograms of weights and gradients every N steps; 0: at evaluations", &S::histograms_every,
               Keep::free, 0, kMany});
  t.push_back({"monitor-every", In::help_all, group, "X",
               "seconds between samples of CPU, memory, network and disk (monitor.csv); 0: none", &S::monitor_every,
               Keep::free, 0, 3600});
  t.push_back({"trace", In::help, group, "", "write a trace of all roles for Perfetto or chrome://tracing (trace.json)",
               &S::trace, Keep::free});
  t.push_back({"trace-steps", In::help_all, group, "N", "number of steps to trace, after the first 10; 0: all",
               &S::trace_steps, Keep::free, 0, kMany});
  t.push_back(
      {"metrics", In::help_all, group, "[HOST:]PORT",
       "serve metrics for Prometheus at http://HOST:PORT/metrics, without a host on 127.0.0.1; the roles of a launched "
       "cluster use PORT, PORT+1 ...",
       &S::metrics, Keep::free});
}

void add_machine(std::vector<SettingDef>& t) {
  const std::string_view machine = "Machine";
  t.push_back({"backend", In::help_all, machine, "NAME", "what computes", &S::backend, Keep::free, 0, 0, false, false,
               backend_names()});
  t.push_back({"threads", In::help, machine, "N", "compute threads, at most 16 per core; 0: one per core", &S::threads,
               Keep::free, 0, 4096});
  t.push_back({"wait-policy",
               In::help_all,
               machine,
               "NAME",
               "how idle threads wait; auto: spin briefly if every thread has a core, otherwise block",
               enum_member<&S::wait_policy>(),
               Keep::free,
               0,
               0,
               false,
               false,
               {"auto", "spin", "block"}});
  t.push_back({"exact-conv", In::help_all, machine, "",
               "compute convolutions as direct sums, without Winograd's faster algorithm for 3x3", &S::exact_conv,
               Keep::fixed});
  t.push_back(
      {"precision",
       In::help_all,
       machine,
       "NAME",
       "precision of wide convolutions and large matrix products; parameters, gradients and sums are always f32",
       enum_member<&S::precision>(),
       Keep::fixed,
       0,
       0,
       false,
       false,
       {"f32", "bf16"}});
}

constexpr std::string_view kCluster = "Cluster";

SettingDef choice(std::string_view name, In shown, std::string_view value, std::string_view help, EnumMember member,
                  Keep keep, std::vector<std::string> choices) {
  return {name, shown, kCluster, value, help, member, keep, 0, 0, false, false, std::move(choices)};
}

/// Adds the settings for combining the workers' gradients.
void add_semantics(std::vector<SettingDef>& t) {
  t.push_back(choice("mode", In::help_all, "NAME",
                     "one update from all workers' gradients (sync), or one per gradient as it arrives (async)",
                     enum_member<&S::mode>(), Keep::fixed, {"sync", "async"}));
  t.push_back({"max-staleness", In::help_all, kCluster, "N",
               "async: limit of batches by which the fastest worker may be ahead of the slowest; -1: no limit",
               &S::max_staleness, Keep::free, -1, 1e9});
  t.push_back({"aggregate", In::help_all, kCluster, "N",
               "sync: gradients per update; if fewer than the workers, the rest are backups; 0: one from each worker",
               &S::aggregate, Keep::free, 0, 1e6});
  t.push_back(choice("reduce", In::help_all, "mean|sum", "combine the gradients of an update by mean or sum",
                     enum_member<&S::reduce>(), Keep::fixed, {"mean", "sum"}));
  t.push_back(choice("apply", In::help_all, "NAME",
                     "async: apply updates one at a time, or concurrently in the same memory (Hogwild)",
                     enum_member<&S::apply>(), Keep::free, {"locked", "lock-free"}));
  t.push_back({"global-batch", In::help_all, kCluster, "N",
               "examples per batch over all workers; 0: --batch for each worker", &S::global_batch, Keep::fixed, 0,
               kBatch});
  t.push_back(choice("shard", In::help_all, "NAME",
                     "each worker sees its share of the examples (example), or all of them (none)",
                     enum_member<&S::shard>(), Keep::fixed, {"example", "none"}));
  t.push_back(choice("evaluate", In::help_all, "NAME", "workers that evaluate during training: the chief, or all",
                     enum_member<&S::evaluate>(), Keep::free, {"chief", "all"}));
}

void add_all_reduce(std::vector<SettingDef>& t) {
  t.push_back(choice("strategy", In::help, "NAME",
                     "how gradients are exchanged; auto: ps if the cluster has parameter servers, otherwise allreduce",
                     enum_member<&S::strategy>(), Keep::free, {"auto", "ps", "allreduce"}));
  t.push_back({"replicas", In::help_all, kCluster, "N",
               "train N replicas in this process, each on its share of the cores; 0: one", &S::replicas, Keep::free, 0,
               1000});
  t.push_back(choice("collective", In::help_all, "NAME",
                     "all-reduce: communication engine; auto: chosen by how the members were started",
                     enum_member<&S::collective>(), Keep::free, {"auto", "inprocess", "mpi", "gloo"}));
  t.push_back({"bucket-mb", In::help_all, kCluster, "X", "all-reduce: size of a bucket of gradients, in MB",
               &S::bucket_mb, Keep::free, 0.001, 1e6});
  t.push_back({"autotune", In::help_all, kCluster, "", "all-reduce: find the best --bucket-mb in the first steps",
               &S::autotune, Keep::free});
  t.push_back(
      {"top-k", In::help_all, kCluster, "X",
       "all-reduce: send only this share of the gradients, the largest; the rest is added to the next step; 0: all",
       &S::top_k, Keep::free, 0, 1});
  t.push_back({"min-workers", In::help_all, kCluster, "N",
               "all-reduce: fewest members that train; without --allow-split at least half of all", &S::min_workers,
               Keep::free, 0, 1000});
  t.push_back({"max-workers", In::help_all, kCluster, "N",
               "all-reduce: most members that train; further ones wait; 0: no limit", &S::max_workers, Keep::free, 0,
               1000});
  t.push_back({"allow-split", In::help_all, kCluster, "",
               "all-reduce: each part of a broken network trains on; when they meet, the one with more steps goes on",
               &S::allow_split, Keep::free});
  t.push_back(
      {"membership",
       In::help_all,
       kCluster,
       "auto|majority|URL",
       "all-reduce: who decides which members train: more than half of them, (auto) the launcher if one started "
       "them, or etcd",
       &S::membership,
       Keep::free,
       0,
       0,
       false,
       false,
       {"auto", "majority"},
       [](std::string_view text) { return text.starts_with("etcd://"); },
       "etcd://HOST:PORT,HOST:PORT"});
  t.push_back({"etcd-ca", In::help_all, kCluster, "FILE", "certificates (PEM) that etcd's must be signed by: use TLS",
               &S::etcd_ca, Keep::free});
  t.push_back({"etcd-cert", In::help_all, kCluster, "FILE", "this client's certificate (PEM) for etcd", &S::etcd_cert,
               Keep::free});
  t.push_back(
      {"etcd-key", In::help_all, kCluster, "FILE", "the private key (PEM) of --etcd-cert", &S::etcd_key, Keep::free});
  t.push_back({"etcd-user", In::help_all, kCluster, "NAME",
               "user of etcd; the password is in the environment, LOCKSTEP_ETCD_PASSWORD", &S::etcd_user, Keep::free});
}

void add_cluster(std::vector<SettingDef>& t) {
  t.push_back({"workers", In::help, kCluster, "N", "start N workers on this machine; 0: train in this process",
               &S::workers, Keep::free, 0, 1000});
  t.push_back(
      {"ps", In::help, kCluster, "N", "parameter servers to start with the workers", &S::ps, Keep::free, 1, 1000});
  t.push_back({"evaluator", In::help_all, kCluster, "",
               "start an evaluator, which evaluates each checkpoint instead of the chief", &S::evaluator, Keep::free});
  add_all_reduce(t);
  add_semantics(t);
  t.push_back(choice("placement", In::help_all, "NAME",
                     "placement of parameters on several servers: equal parts, or whole parameters in turn",
                     enum_member<&S::placement>(), Keep::free, {"balanced", "round-robin"}));
  t.push_back(choice("wire", In::help_all, "NAME", "element type of gradients and parameters on the network",
                     enum_member<&S::wire>(), Keep::free, {"f32", "bf16", "f16"}));
  t.push_back(
      choice("durability", In::help_all, "NAME",
             "what a parameter server's state survives: kill -9 (process), a power cut (machine), neither (checkpoint)",
             enum_member<&S::durability>(), Keep::free, {"process", "machine", "checkpoint"}));
  t.push_back({"contributions", In::help_all, kCluster, "",
               "record which examples of which worker made each update (ps-0/contributions.csv)", &S::contributions,
               Keep::free});
  t.push_back({"layout", In::help_all, kCluster, "TEXT",
               "roles of each node, e.g. PW-W: a server and a worker on the first node, a worker on the second",
               &S::layout, Keep::free});
  t.push_back({"cluster", In::help_all, kCluster, "FILE",
               "file with the cluster's addresses (docs/cluster-spec.md); or set TF_CONFIG in the environment",
               &S::cluster, Keep::call_only});
  t.push_back({"task", In::help_all, kCluster, "ROLE:N", "role of this process in the cluster, e.g. worker:1", &S::task,
               Keep::call_only});
  t.push_back({"tls", In::help_all, kCluster, "DIR", "folder of keys for encrypted connections (`lockstep keys new`)",
               &S::tls});
  t.push_back({"insecure", In::help_all, kCluster, "", "allow addresses beyond this machine without --tls",
               &S::insecure, Keep::call_only});
  t.push_back(
      {"restarts", In::help_all, kCluster, "N", "restarts of each role that dies", &S::restarts, Keep::free, 0, 1e6});
  t.push_back({"patience", In::help_all, kCluster, "X", "give up after waiting X seconds for a missing role",
               &S::patience, Keep::free, 1, 1e9});
  t.push_back({"start-wait", In::help_all, kCluster, "X", "wait up to X seconds for all workers at the start",
               &S::start_wait, Keep::free, 0, 1e9});
  t.push_back({"cpu-quota", In::help_all, kCluster, "X", "limit of cores per role, e.g. 0.25 (needs root); 0: no limit",
               &S::cpu_quota, Keep::free, 0, 1024});
  t.push_back(
      {"emulate", In::help_all, kCluster, "NODES",
       "emulate each node of the layout on this machine, with its own network, CPU and memory (needs root), e.g."
       "cores=0.5,memory=1GB,rate=1gbit,delay=1ms,node2.cores=0.25",
       &S::emulate});
  t.push_back({"faults", In::help_all, kCluster, "TEXT",
               "faults to inject, e.g. 'at 30s kill worker:1; at 60s cut node2 for 10s'", &S::faults});
  t.push_back(choice("report", In::help_all, "NAME", "output of a role: text for people, or JSON lines for a launcher",
                     enum_member<&S::report>(), Keep::call_only, {"text", "json"}));
}

}  // namespace

const std::vector<SettingDef>& settings_table() {
  static const std::vector<SettingDef> table = [] {
    std::vector<SettingDef> made;
    add_what(made);
    add_optimizer(made);
    add_length(made);
    add_run(made);
    add_observation(made);
    add_machine(made);
    add_cluster(made);
    return made;
  }();
  return table;
}

}  // namespace lockstep::settings
