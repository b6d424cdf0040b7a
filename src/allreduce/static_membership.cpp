#include "allreduce/static_membership.h"

#include <numeric>

namespace lockstep::allreduce {
namespace {

/// Converts a standing to numbers, for members of the same build.
std::vector<int64_t> flatten(const Standing& standing) {
  std::vector<int64_t> numbers{static_cast<int64_t>(standing.step), static_cast<int64_t>(standing.examples),
                               static_cast<int64_t>(standing.bucket_bytes), standing.data.next_pass};
  for (const data::PassPart& part : standing.data.parts) {
    numbers.push_back(part.pass);
    numbers.push_back(static_cast<int64_t>(part.ranges.size()));
    for (const base::Range& range : part.ranges) numbers.insert(numbers.end(), {range.begin, range.end});
  }
  return numbers;
}

Standing unflatten(const std::vector<int64_t>& numbers) {
  Standing standing;
  standing.step = static_cast<uint64_t>(numbers[0]);
  standing.examples = static_cast<uint64_t>(numbers[1]);
  standing.bucket_bytes = static_cast<uint64_t>(numbers[2]);
  standing.data.next_pass = numbers[3];
  for (size_t i = 4; i < numbers.size();) {
    data::PassPart part;
    part.pass = numbers[i++];
    for (int64_t left = numbers[i++]; left > 0; --left, i += 2) part.ranges.push_back({numbers[i], numbers[i + 1]});
    standing.data.parts.push_back(std::move(part));
  }
  return standing;
}

/// Sends rank 0's standing to all.
base::Result<Standing> share(collective::Collective& collective, const Standing& mine) {
  std::vector<int64_t> numbers = flatten(mine);
  auto count = static_cast<int64_t>(numbers.size());
  base::Status told = collective.broadcast(std::as_writable_bytes(std::span(&count, 1)), 0);
  if (!told) return told.failure();
  numbers.resize(static_cast<size_t>(count));
  told = collective.broadcast(std::as_writable_bytes(std::span(numbers)), 0);
  if (!told) return told.failure();
  return unflatten(numbers);
}

}  // namespace

StaticMembership::StaticMembership(std::shared_ptr<collective::Collective> collective, std::string advice)
    : collective_(std::move(collective)), advice_(std::move(advice)) {}

base::Result<Formed> StaticMembership::form(const Standing& standing) {
  if (formed_) return base::Failure{base::FailureKind::gone, advice_};
  formed_ = true;
  base::Result<Standing> first = share(*collective_, standing);
  if (!first) return first.failure();
  Formed formed;
  formed.number = 1;
  formed.members.resize(static_cast<size_t>(collective_->size()));
  std::iota(formed.members.begin(), formed.members.end(), 0);
  formed.collective = collective_;
  formed.standing = std::move(first.value());
  return formed;
}

base::Result<Parting> StaticMembership::close(train::StopReason /*why*/) {
  if (collective_->rank() == 0) return Parting::closes;
  const base::Status ended = collective_->barrier();
  if (!ended) return ended.failure();
  return Parting::leaves;
}

void StaticMembership::end() { static_cast<void>(collective_->barrier()); }

}  // namespace lockstep::allreduce
