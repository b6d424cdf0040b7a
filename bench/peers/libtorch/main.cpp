// PyTorch's C++ API on the CPU, measured by the rules of ../common.py.

#include <torch/torch.h>
#include <torch/version.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using torch::Tensor;

constexpr int64_t kClasses = 10;
constexpr int64_t kSide = 28;
constexpr double kSgdRate = 0.01;
constexpr double kAdamRate = 1e-3;
constexpr int kWarmUpSteps = 20;
constexpr double kWarmUpSeconds = 0.5;
constexpr double kChunkSeconds = 0.02;

struct Args {
  std::string model, optimizer, data;
  int64_t batch = 0;
  int threads = 0;
  double seconds = 2.0;
  bool epoch = false;
};

Args parse_args(int argc, char** argv) {
  Args args;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--epoch") {
      args.epoch = true;
      continue;
    }
    if (i + 1 == argc) throw std::invalid_argument(flag + " needs a value");
    const std::string value = argv[++i];
    if (flag == "--model")
      args.model = value;
    else if (flag == "--optimizer")
      args.optimizer = value;
    else if (flag == "--data")
      args.data = value;
    else if (flag == "--batch")
      args.batch = std::stoll(value);
    else if (flag == "--threads")
      args.threads = std::stoi(value);
    else if (flag == "--seconds")
      args.seconds = std::stod(value);
    else
      throw std::invalid_argument("unknown option " + flag);
  }
  if (args.model != "lr" && args.model != "lenet") throw std::invalid_argument("--model is lr or lenet");
  if (args.optimizer != "sgd" && args.optimizer != "adam") throw std::invalid_argument("--optimizer is sgd or adam");
  if (args.batch < 1 || args.threads < 1) throw std::invalid_argument("--batch and --threads are needed");
  if (args.epoch && args.data.empty()) throw std::invalid_argument("--epoch needs --data");
  return args;
}

struct Examples {
  Tensor images;  // float32, (n, 1, 28, 28), in [0, 1]
  Tensor labels;  // int64
};

Examples synthetic_batch(int64_t batch) {
  const Tensor labels = torch::arange(batch).remainder(kClasses);
  const Tensor prototypes = torch::rand({kClasses, 1, kSide, kSide});
  return {0.5 * (prototypes.index_select(0, labels) + torch::rand({batch, 1, kSide, kSide})), labels};
}

// Reads the bytes of an idx file after its header: four bytes, and four per dimension.
Tensor read_idx(const std::string& path, int dimensions) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> block(1 << 20);
  int got = 0;
  while ((got = gzread(file.get(), block.data(), block.size())) > 0) {
    bytes.insert(bytes.end(), block.begin(), block.begin() + got);
  }
  const int64_t header = 4 + 4 * dimensions;
  const int64_t size = static_cast<int64_t>(bytes.size()) - header;
  if (got < 0 || size <= 0) throw std::runtime_error("cannot read " + path);
  return torch::from_blob(bytes.data() + header, {size}, torch::kUInt8).clone();
}

Examples training_data(const std::string& folder) {
  const Tensor images = read_idx(folder + "/train-images-idx3-ubyte.gz", 3);
  const Tensor labels = read_idx(folder + "/train-labels-idx1-ubyte.gz", 1);
  return {images.view({-1, 1, kSide, kSide}).to(torch::kFloat) / 255, labels.to(torch::kLong)};
}

// Returns whole batches with one indexing operation.
class Dataset : public torch::data::datasets::BatchDataset<Dataset, torch::data::Example<>> {
 public:
  explicit Dataset(Examples examples) : examples_(std::move(examples)) {}

  torch::data::Example<> get_batch(c10::ArrayRef<size_t> indices) override {
    const Tensor chosen =
        torch::from_blob(const_cast<size_t*>(indices.data()), {static_cast<int64_t>(indices.size())}, torch::kLong);
    return {examples_.images.index_select(0, chosen), examples_.labels.index_select(0, chosen)};
  }

  std::optional<size_t> size() const override { return examples_.labels.size(0); }

 private:
  Examples examples_;
};

torch::nn::Sequential build_model(const std::string& name) {
  using namespace torch::nn;
  if (name == "lr") return Sequential(Flatten(), Linear(kSide * kSide, kClasses));
  Sequential model(Conv2d(Conv2dOptions(1, 6, 5).padding(2)), ReLU(), MaxPool2d(2), Conv2d(6, 16, 5), ReLU(),
                   MaxPool2d(2), Flatten(), Linear(400, 120), ReLU(), Linear(120, 84), ReLU(), Linear(84, kClasses));
  for (Tensor& parameter : model->parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
  }
  return model;
}

class Trainer {
 public:
  explicit Trainer(const Args& args) : model_(build_model(args.model)) {
    if (args.optimizer == "sgd") {
      optimizer_ = std::make_unique<torch::optim::SGD>(model_->parameters(), kSgdRate);
    } else {
      optimizer_ = std::make_unique<torch::optim::Adam>(model_->parameters(), kAdamRate);
    }
  }

  Tensor train(const Tensor& images, const Tensor& labels) {
    const Tensor loss = torch::nn::functional::cross_entropy(model_->forward(images), labels);
    loss.backward();
    optimizer_->step();
    optimizer_->zero_grad(/*set_to_none=*/true);
    return loss;
  }

 private:
  torch::nn::Sequential model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Returns the peak memory of this process, in MB.
double peak_memory() {
  std::ifstream status("/proc/self/status");
  double kilobytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) kilobytes = std::stod(line.substr(6));
  }
  return kilobytes * 1024 / 1e6;
}

void print(const std::vector<double>& seconds_per_step, int64_t steps, double first, double last) {
  std::printf(
      "{\"ms_per_step\": %.9g, \"steps\": %lld, \"loss_first\": %.9g, \"loss_last\": %.9g, "
      "\"memory_mb\": %.1f, \"version\": \"libtorch %s\"}\n",
      1e3 * median(seconds_per_step), static_cast<long long>(steps), first, last, peak_memory(), TORCH_VERSION);
}

double warm_up(const std::function<Tensor()>& step) {
  for (int i = 0; i < kWarmUpSteps; ++i) step();
  int64_t count = 0;
  const double start = now();
  while (count == 0 || now() - start < kWarmUpSeconds) {
    step();
    ++count;
  }
  return (now() - start) / count;
}

void measure_steps(const std::function<Tensor()>& step, double seconds) {
  const double first = step().item<double>();
  const int64_t chunk = std::max<int64_t>(1, std::llround(kChunkSeconds / warm_up(step)));
  std::vector<double> times;
  Tensor loss;
  const double end = now() + seconds;
  while (times.empty() || now() < end) {
    const double start = now();
    for (int64_t i = 0; i < chunk; ++i) loss = step();
    times.push_back((now() - start) / chunk);
  }
  print(times, chunk * static_cast<int64_t>(times.size()), first, loss.item<double>());
}

void measure_epochs(Trainer& trainer, const Args& args) {
  const auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Dataset(training_data(args.data)), torch::data::DataLoaderOptions().batch_size(args.batch).drop_last(true));
  Tensor loss;
  const auto epoch = [&](int64_t limit) {
    int64_t steps = 0;
    for (const auto& example : *loader) {
      loss = trainer.train(example.data, example.target);
      if (++steps == limit) break;
    }
    return steps;
  };
  epoch(1);
  const double first = loss.item<double>();
  epoch(kWarmUpSteps);
  std::vector<double> times;
  int64_t total = 0;
  const double end = now() + args.seconds;
  while (times.empty() || now() < end) {
    const double start = now();
    const int64_t steps = epoch(std::numeric_limits<int64_t>::max());
    times.push_back((now() - start) / steps);
    total += steps;
  }
  print(times, total, first, loss.item<double>());
}

void run(const Args& args) {
  at::globalContext().setFlushDenormal(true);
  torch::set_num_threads(args.threads);
  torch::manual_seed(1);
  Trainer trainer(args);
  if (args.epoch) {
    measure_epochs(trainer, args);
  } else {
    const Examples batch = synthetic_batch(args.batch);
    measure_steps([&] { return trainer.train(batch.images, batch.labels); }, args.seconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse_args(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "libtorch_peer: " << error.what() << '\n';
    return 1;
  }
}
