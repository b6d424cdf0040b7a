#include "program/parameters.h"

#include <algorithm>

#include "base/random.h"

namespace lockstep::program {
namespace {

constexpr uint64_t kInitialValues = 0x70617261;  // the random stream of initial values

void initialise(const graph::Initializer& initializer, base::Sequence random, std::span<float> values) {
  switch (initializer.kind) {
    case graph::Initializer::Kind::zeros:
      std::fill(values.begin(), values.end(), 0.0F);
      break;
    case graph::Initializer::Kind::constant:
      std::fill(values.begin(), values.end(), initializer.scale);
      break;
    case graph::Initializer::Kind::uniform:
      for (float& value : values) value = initializer.scale * (2.0F * random.uniform() - 1.0F);
      break;
    case graph::Initializer::Kind::normal:
      for (float& value : values) value = initializer.scale * random.normal();
      break;
    case graph::Initializer::Kind::list:
      std::copy(initializer.values.begin(), initializer.values.end(), values.begin());
      break;
  }
}

}  // namespace

ParameterStore::ParameterStore(std::vector<graph::ParameterInfo> infos, uint64_t seed)
    : infos_(std::move(infos)),
      count_(infos_.empty() ? 0 : infos_.back().offset + infos_.back().count()),
      values_(count_ * sizeof(float)),
      gradients_(count_ * sizeof(float)) {
  for (size_t i = 0; i < infos_.size(); ++i) {
    initialise(infos_[i].initializer, base::Sequence(seed, kInitialValues, i),
               values().subspan(infos_[i].offset, infos_[i].count()));
  }
}

}  // namespace lockstep::program
