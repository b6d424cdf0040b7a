// Writes the seeds of the fuzz targets: small valid files, for the fuzzer to damage.
// fuzz_seeds FOLDER MODELS ONNX-FILES
#include <png.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "allreduce/elastic/messages.h"
#include "base/temp_dir.h"
#include "checkpoint/checkpoint.h"
#include "cluster/tar_files.h"
#include "data/formats.h"
#include "data/jpegs.h"
#include "interchange/onnx_export.h"
#include "ps/messages.h"
#include "settings/configuration.h"
#include "transport/convert.h"
#include "transport/frame.h"

namespace {

using lockstep::testing::append;
using lockstep::testing::Bytes;
using lockstep::testing::bytes_of;
using lockstep::testing::gzip;
using lockstep::testing::make_idx;
using lockstep::testing::make_jpeg;
using lockstep::testing::make_npy;
using lockstep::testing::make_zip;
using lockstep::testing::npy_dict;
using lockstep::testing::put_file;
using lockstep::testing::ramp;
using lockstep::testing::with_orientation;

/// Puts the format first, which npz_fuzz reads from the first byte.
Bytes tagged(uint8_t format, const Bytes& file) {
  Bytes result{format};
  append(result, file);
  return result;
}

Bytes make_png() {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = 2;
  image.height = 2;
  image.format = PNG_FORMAT_GRAY;
  const Bytes pixels = ramp(4);
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  Bytes file(size);
  png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr);
  return file;
}

/// Returns lists in lists, in a text of the targets' largest size: 30,000 levels overflow a stack.
std::string nested(const std::string& before, const std::string& after) {
  constexpr size_t kLevels = 30'000;
  return before + std::string(kLevels, '[') + std::string(kLevels, ']') + after;
}

void put_text(const std::string& path, const std::string& text) {
  put_file(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void write_idx(const std::string& folder) {
  put_file(folder + "/images", make_idx({2, 3, 4}, ramp(24)));
  put_file(folder + "/labels.gz", gzip(make_idx({5}, ramp(5, 10))));
}

void write_npz(const std::string& folder) {
  const Bytes bytes = make_npy(npy_dict("|u1", "(1, 2, 2)"), ramp(4));
  const Bytes floats = make_npy(npy_dict("<f4", "(1, 4)"), bytes_of<float>({0, 0.5F, 1, 0}), 2);
  put_file(folder + "/bytes.npy", tagged(0, bytes));
  put_file(folder + "/floats.npy", tagged(0, floats));
  put_file(folder + "/image.png", tagged(1, make_png()));
  put_file(folder + "/photo.jpg", tagged(4, with_orientation(make_jpeg(9, 5, ramp(135), {JCS_RGB, 3, false}), 6)));
  put_file(folder + "/progressive.jpg", tagged(4, make_jpeg(9, 5, ramp(45), {JCS_GRAYSCALE, 1, true})));
  put_file(folder + "/pair.npz", tagged(2, make_zip({{"x.npy", bytes, 8}, {"y.npy", floats, 0}})));
}

/// Writes own data: csv_fuzz reads its first byte as the label column, npz_fuzz takes 3 as own data.
void write_own_data(const std::string& csv, const std::string& npz) {
  const auto text = [](const std::string& content) { return Bytes(content.begin(), content.end()); };
  put_file(csv + "/names", tagged(4, text("a,\"b\",kind\r\n1,2.5e-1,\"x\"\"y\"\r\n\r\n-3,4,z\r\n5,+6,z\r\n")));
  put_file(csv + "/pixels", tagged(0, text("0,255,3,4,0\n1,2,3,4,1\n9,9,9,9,2.0\n")));
  put_file(csv + "/packed", tagged(3, gzip(text("1,2\n3,4\n"))));
  const Bytes train = make_npy(npy_dict("<f4", "(2, 4)"), bytes_of<float>({0, 0.5F, 1, 0, 1, 1, 1, 1}));
  const Bytes labels = make_npy(npy_dict("<i4", "(2, 1)"), bytes_of<int32_t>({0, 1}));
  put_file(npz + "/splits.npz", tagged(3, make_zip({{"X_train.npy", train, 8},
                                                    {"y_train.npy", labels, 0},
                                                    {"X_test.npy", train, 0},
                                                    {"y_test.npy", labels, 8}})));
  put_file(npz + "/one_pair.npz", tagged(3, make_zip({{"X.npy", train, 0}, {"y.npy", labels, 0}})));
}

void write_checkpoint(const std::string& folder) {
  lockstep::checkpoint::CheckpointHeader header;
  header.model = "lr";
  header.image = {1, 2, 2};
  header.classes = 2;
  header.class_names = {"no", "yes"};
  header.parameters = {{"w", {4, 2}}, {"b", {2}}};
  header.optimizer = "momentum";
  header.slots = {"velocity"};
  header.settings = {{"lr", "0.5"}};
  header.train_examples = 50;
  header.state.step = 7;
  header.state.data = {{{2, {{0, 4}, {9, 50}}}, {3, {{7, 8}}}}, 4};
  const std::vector<float> values(10, 0.5F);
  const std::vector<std::span<const float>> arrays{values, values};
  lockstep::checkpoint::write_checkpoint(folder + "/small.ckpt", header, arrays);
  const std::string json = lockstep::checkpoint::header_to_json(header);
  put_text(folder + "/header.json", json);
  const std::string classes = "\"classes\":";
  const size_t at = json.find(classes) + classes.size();
  put_text(folder + "/deep.json", nested(json.substr(0, at), json.substr(json.find(',', at))));
}

void write_config(const std::string& folder) {
  const std::string yaml = lockstep::settings::to_yaml({});
  put_text(folder + "/all.yaml", yaml);
  const std::string small = "model: lenet\noptions: {pool: avg}\nlr: 1e-3\nstop_loss: 0.35\n";
  put_text(folder + "/small.yaml", small);
  put_text(folder + "/deep.yaml", nested("model: lr\noptions: {a: ", "}\n"));
}

/// Writes records. The first byte tells records_fuzz which file the rest is.
void write_records(const std::string& folder) {
  const auto put = [&](const std::string& name, uint8_t kind, const std::string& text) {
    put_file(folder + "/" + name, tagged(kind, Bytes(text.begin(), text.end())));
  };
  put("summary", 0, R"({"steps":200,"seconds":0.5,"aside_seconds":0.1,"examples_per_second":1e5,"test_accuracy":null,
      "workers":[{"role":"worker:0","iterations":200,"wait_share":0.6,"compute_seconds":1}],"stragglers":["a"],
      "communication":{"engine":"gloo","bytes_per_step":31512},"phases":[{"phase":"pull","count":9,"seconds":0.2},
      {"phase":"forward","count":200,"seconds":0.1}],"resources":{"samples":12,"cpu_percent":{"mean":85,"max":101}}})");
  put("deep", 0, nested(R"({"workers":[{"role":)", "}]}"));
  put("server", 4, R"({"role":"ps:0","phases":[{"phase":"apply","seconds":1}],"resources":{"samples":9}})");
  put("steps", 1, "step,epoch,seconds,loss,accuracy\n1,1,0.1,2.3,0.1\n100,1,0.3,5e-1,\n200,");
  put("monitor", 2, "time,seconds,cpu_percent\n2026-11-16,0.5,80\r\n1794787201.0,1.0,\nx\n");
}

void write_profile(const std::string& folder) {
  const std::string json = R"({"lockstep_profile":1,"host":"north","isa":"avx2","cores":4,"memory_bytes":8e9,
      "memory_rate":1e10,"link_rate":2e9,"costs":{"message":3e-5,"byte":2.5e-10,"wake":2e-5,"add":1e-10,"update":3e-5,
      "update_byte":2e-10},"models":[{"model":"lr","memory_fixed":1e6,"memory_each":3136,"tensors":[{"count":7840,
      "announced":1},{"count":10,"announced":0.25}],"points":[{"batch":1,"threads":1,"forward":1e-5,"backward":2e-5,
      "optimizer":1e-6,"spread":0.1},{"batch":64,"threads":1,"forward":1e-4,"backward":2e-4,"optimizer":1e-6,
      "spread":0.1}]}]})";
  put_text(folder + "/lr.json", json);
  const size_t at = json.find("1e-5");
  put_text(folder + "/deep.json", nested(json.substr(0, at), json.substr(at + 4)));
}

/// Writes what other programs write. The first byte tells guest_fuzz how to read the rest.
void write_guest(const std::string& folder) {
  const auto put = [&](const std::string& name, uint8_t kind, const std::string& text) {
    put_file(folder + "/" + name, tagged(kind, Bytes(text.begin(), text.end())));
  };
  put("dstat", 0,
      "\"Dstat 0.7.2 CSV output\"\n\"Host:\",\"n1\",,,,\"User:\",\"root\"\n"
      "\"Cmdline:\",\"dstat\",,,,\"Date:\",\"03 Dec 2020 14:10:38 CST\"\n\n"
      "\"system\",\"total cpu usage\",,,,,,\"memory usage\",,,,\"net/total\",\n"
      "\"time\",\"usr\",\"sys\",\"idl\",\"wai\",\"hiq\",\"siq\",\"used\",\"buff\",\"cach\",\"free\",\"recv\",\"send\"\n"
      "03-12 14:10:38,1,1,98,0,0,0,1e9,0,0,0,0,0\n03-12 14:10:39,2,1.5,96,0,0,0.5,1e9,0,0,0,60,130\n");
  put("collectl", 0,
      "################\n# Host:       n2  DaemonOpts:\n#Date Time [CPU]User% [CPU]Sys% [MEM]Used [NET]RxKBTot\n"
      "20201123 18:57:54 1 2 8010132 5\n20201123 18:57:55.500 1 2 8010132 5\n");
  put("utc", 0, "#UTC [CPU]User% [DSK]ReadKBTot\n1606157873 1 2\n1606157874 1 2\n");
  put("columns", 1, "epoch,loss\n1,\"0.5\"\n2,\"a\"\"b\"\n3");
  put("output", 2, "epoch (\\d+)\nepoch 3 loss 0.5\nepoch 4\n");
  // An event with the scalar "loss": 0.5 at step 3, in its frame.
  const std::string event(
      "\x09\x00\x00\x00\x00\x00\x00\x59\x40\x10\x03\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f", 26);
  put("event", 3, event);
}

void write_cluster(const std::string& tf_config, const std::string& file, const std::string& slurm) {
  const auto put = put_text;
  put(tf_config + "/deep", nested(R"({"cluster":{"worker":)", "}}"));
  put(file + "/deep.yaml", nested("worker: ", "\n"));
  put(tf_config + "/full", R"({"cluster":{"chief":["h0:1"],"worker":["h1:1","[::1]:2"],"ps":["h3:1"],
      "evaluator":["h4:1"]},"task":{"type":"worker","index":1},"environment":"cloud"})");
  put(tf_config + "/sparse",
      R"({"sparseCluster":{"worker":{"1":"h2:1"},"ps":["h3:1"]},"task":{"type":"worker","index":"1"}})");
  put(tf_config + "/outside", R"({"cluster":{"master":["a:1"],"ps":["b:1"]},"task":{"type":"evaluator"}})");
  put(file + "/lists.yaml", "chief: [a:1]\nworker: ['[::1]:2', b:2]\nps: [a:2]\nevaluator: [c:1]\n");
  put(file + "/nodes.yaml",
      "port: 5000\nnodes:\n- {host: a, roles: [ps, worker], ssh: u@a, dir: d, port: 7}\n- {host: b, roles: worker}\n");
  put(file + "/layout.yaml", "layout: PSW-CW-E\nhosts: [a, b, c]\nport: 1\n");
  put(slurm + "/block", "node[01-02]\n2(x2)");
  put(slurm + "/uneven", "r[1-2]n[1],gpu1,x[7,9]-ib\n1,2,1(x3)");
}

/// Writes archives of hosts, good and bad. The first byte is the size of the pieces that tar_fuzz feeds.
void write_tar(const std::string& folder) {
  using lockstep::testing::make_tar;
  const auto put = [&](const char* name, const std::string& archive) {
    put_file(folder + "/" + name, tagged(50, Bytes(archive.begin(), archive.end())));
  };
  put("plain", make_tar({{"./", "", '5'}, {"./ps-0/", "", '5'}, {"./ps-0/log", "text"}, {"./empty"}}));
  put("long", make_tar({{"././@LongLink", std::string(150, 'a') + '\0', 'L'}, {"a", "text"}}));
  put("pax", make_tar({{"x", "19 path=worker-1/a\n", 'x'}, {"x", "text"}, {"x", "9 size=3\n", 'x'}, {"y", "abc"}}));
  put("link", make_tar({{"x", "", '2', "/etc"}, {"x/y", "text"}}));
  put("climbs", make_tar({{"a/../../x", "text"}}));
  put("large", make_tar({{"x", "", '0', "", "\x80" + std::string(11, '\x7F')}}));
}

/// Copies the examples whose names end in .yaml.
void write_model_yaml(const std::string& folder, const std::string& examples) {
  for (const auto& entry : std::filesystem::directory_iterator(examples)) {
    std::filesystem::copy_file(entry.path(), std::filesystem::path(folder) / entry.path().filename(),
                               std::filesystem::copy_options::overwrite_existing);
  }
  put_text(folder + "/deep.yaml", nested("layers: ", "\n"));
}

/// Writes a file of PyTorch's, and our own exports small enough for damage everywhere.
void write_onnx(const std::string& folder, const std::string& files) {
  std::filesystem::copy_file(files + "/small.onnx", folder + "/small.onnx",
                             std::filesystem::copy_options::overwrite_existing);
  for (const char* name : {"lr", "autoencoder"}) {
    const lockstep::nn::ModelDef& model = lockstep::nn::find_model(name);
    lockstep::nn::BuildRequest request{.batch = 1, .image = {1, 2, 2}, .classes = 2, .options = {}};
    if (model.name == "autoencoder") request.options = {{"hidden", "3-2"}};
    lockstep::graph::Graph graph;
    lockstep::nn::build(graph, model, request);
    const std::vector<float> parameters(graph.parameter_count(), 0.5F);
    const std::string bytes = lockstep::interchange::export_onnx(model, request, parameters).bytes;
    put_text(folder + "/" + name, bytes);
  }
  std::string groups;  // field 127, which no message has: the parser skips it, level by level
  for (const char* tag : {"\xFB\x07", "\xFC\x07"}) {
    for (int i = 0; i < 15'000; ++i) groups += tag;
  }
  put_text(folder + "/deep", groups);
}

/// Writes a frame of each element type. The first byte says where frame_fuzz cuts it into pieces.
void write_frame(const std::string& folder) {
  using lockstep::transport::Element;
  for (const Element element : {Element::kFloat32, Element::kBfloat16, Element::kFloat16}) {
    lockstep::transport::Header header;
    header.kind = 1;
    header.count = 4;
    header.element = static_cast<uint32_t>(element);
    const size_t size = 4 * lockstep::transport::bytes_of(element);
    const auto start = lockstep::transport::encode_header(header, size);
    Bytes bytes{static_cast<uint8_t>(size)};
    append(bytes, Bytes(reinterpret_cast<const uint8_t*>(start.data()),
                        reinterpret_cast<const uint8_t*>(start.data()) + start.size()));
    append(bytes, ramp(size));
    put_file(folder + "/" + std::to_string(header.element), bytes);
  }
}

/// Writes messages. The first byte tells ps_messages_fuzz which message the rest is.
void write_ps_messages(const std::string& folder) {
  using namespace lockstep;
  const auto put = [&](const std::string& name, char kind, const std::string& message) {
    const std::string bytes = kind + message;
    put_file(folder + "/" + name, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  };
  ps::CoordinatorOptions options;
  options.members = 3;
  options.batch = 4;
  options.examples = 100;
  options.passes = 3;
  wire::JobConfig job;
  ps::to_wire(options, job);
  ps::to_wire(ps::Rules{}, *job.mutable_optimizer());
  job.set_wire(static_cast<uint32_t>(transport::Element::kFloat32));
  job.set_parameters(10);
  job.add_ranges()->set_count(10);
  put("job", 0, job.SerializeAsString());
  ps::Coordinator coordinator(options, 0, {{{0, {{8, 20}, {30, 100}}}}, 1}, 0);
  coordinator.join(1, 7);
  wire::Ledger ledger;
  coordinator.save(ledger, 1);
  put("ledger", 1, ledger.SerializeAsString());
  wire::Plan plan;
  wire::to_wire(*coordinator.unseen_plan(1, 0), plan);
  put("plan", 2, plan.SerializeAsString());
  wire::Commit commit;
  ps::to_wire(ps::Decision{1, {{0, 1, 1, 1}, {2, 1, 1, 0.5F}}, 0.5F}, commit);
  put("commit", 3, commit.SerializeAsString());
  wire::PushEnd end;
  end.set_plan(1);
  end.set_rounds(1);
  end.set_examples(4);
  put("push", 4, end.SerializeAsString());
}

/// Writes a history in the form that allreduce_messages_fuzz reads, for worker:1 among four: a proposal that is
/// decided, then a newcomer.
void write_allreduce_messages(const std::string& folder) {
  using namespace lockstep::allreduce::elastic;
  std::string bytes;
  const auto add = [&](int place, const Message& message) {
    const std::string text = encode(message);
    const int kind = static_cast<int>(kind_of(message)) - static_cast<int>(Kind::status);
    bytes += static_cast<char>(kind * 4 + place);
    bytes += static_cast<char>(text.size() % 256);
    bytes += static_cast<char>(text.size() / 256);
    bytes += text;
  };
  MemberStatus status;
  status.phase = MemberPhase::forming;
  status.reach = {1, 2, 3};
  add(0, status);
  status.reach = {0, 1, 3};
  add(1, status);
  const Seats seats{{0, 0}, {1, 1}, {2, 0}};
  add(0, Proposal{1, seats});
  Decision decision;
  decision.group = {1, 77, seats};
  decision.addresses = {"a", "here", "c"};
  decision.standing.data = {{{0, {{8, 20}, {30, 100}}}}, 1};
  add(0, decision);
  status.left = 1;
  add(0, status);
  Acceptance acceptance;
  acceptance.number = 2;
  acceptance.standing = decision.standing;
  add(1, acceptance);
  add(1, Refusal{2});
  put_file(folder + "/history", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

/// Writes an experiment that uses every feature once.
void write_experiment(const std::string& folder) {
  const std::string text = R"(name: study
title: A study
repeats: 2
warm_up: 1
base: {model: lr, dataset: synthetic, epochs: 2, options: {}}
cluster: {emulate: {cores: 0.1, node2: {cores: 0.2}}, faults: [at 1s kill worker:1, at 2s cut node2 for 1s]}
groups:
  - {name: one, cluster: off, grid: {batch: [10, 20], lr: [0.1, 0.5]}}
  - name: two
    cases:
      - {label: sync, layout: PW-W, tags: {nodes: 2}}
      - {label: async, layout: PW-W, mode: async, tags: {nodes: 2}, repeats: 1}
report:
  tables: [{name: t, group: one, where: {lr: 0.1}, rows: [batch], columns: [accuracy, seconds]}]
  plots: [{name: p, kind: lines, x: batch, y: accuracy, y2: seconds, series: [label]}]
  findings: [{name: f, says: S., tests: [{compare: seconds, first: {mode: sync}, second: {mode: async}, is: less}]}]
scales:
  quick: {repeats: 1, groups: {one: {grid: {batch: [10]}}, two: off}}
  full: {}
)";
  put_text(folder + "/study.yaml", text);
  put_text(folder + "/deep.yaml", nested("name: x\nbase: ", "\n"));
}

void write_http(const std::string& folder) {
  const auto put = [&](const char* name, std::string_view text) {
    put_file(folder + "/" + name, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  put("page", "GET / HTTP/1.1\r\nHost: localhost:6007\r\nCookie: a=1; lockstep-dash-6007=0123456789abcdef\r\n\r\n");
  put("query", "GET /api/compare?runs=lr%2D1,b%20c&over=step&token=x HTTP/1.0\nHost: [::1]:6007\n\n");
  put("head", "HEAD /api/run/a%20b/charts HTTP/1.1\r\nAccept: */*\r\nX-Empty:\r\n\r\n");
  put("outside", "GET /static/..%2f../x HTTP/1.1\r\n\r\n");
}

std::string made(const std::string& folder) {
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string folder = argv[1];
  try {
    write_idx(made(folder + "/idx"));
    write_npz(made(folder + "/npz"));
    write_own_data(made(folder + "/csv"), folder + "/npz");
    write_checkpoint(made(folder + "/checkpoint"));
    write_config(made(folder + "/config"));
    write_cluster(made(folder + "/tf_config"), made(folder + "/cluster_file"), made(folder + "/slurm"));
    write_tar(made(folder + "/tar"));
    write_experiment(made(folder + "/experiment"));
    write_records(made(folder + "/records"));
    write_profile(made(folder + "/profile"));
    write_guest(made(folder + "/guest"));
    write_model_yaml(made(folder + "/model_yaml"), argv[2]);
    write_http(made(folder + "/http"));
    write_frame(made(folder + "/frame"));
    write_ps_messages(made(folder + "/ps_messages"));
    write_allreduce_messages(made(folder + "/allreduce_messages"));
    write_onnx(made(folder + "/onnx"), argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
