// One rank of an MPI job for mpi_test: mpi_rank WHAT RANKS DEADLINE. Prints its results; a failure goes to standard
// error, with exit code 1.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "collective/mpi/mpi_engine.h"
#include "lockstep/error.h"
#include "transport/convert.h"

namespace lockstep::collective {
namespace {

transport::Element wire(Element element) {
  if (element == Element::float32) return transport::Element::kFloat32;
  return element == Element::bfloat16 ? transport::Element::kBfloat16 : transport::Element::kFloat16;
}

/// Numbers of many sizes, so that the order of additions shows.
float value(int rank, size_t i) {
  const auto hash = static_cast<uint32_t>((i + 1) * 2654435761U) ^ (static_cast<uint32_t>(rank + 1) * 40503U * 65537U);
  return (static_cast<float>(hash % 20011) - 10005) / static_cast<float>(1U << (hash >> 28U));
}

std::vector<std::byte> packed(Element element, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * collective::bytes_of(element));
  transport::pack(wire(element), values, bytes);
  return bytes;
}

std::vector<float> unpacked(Element element, const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / collective::bytes_of(element));
  transport::unpack(wire(element), bytes, values);
  return values;
}

/// Returns ((x0 + x1) + x2) + ..., rounded after each addition.
std::vector<std::byte> sum_in_order(Element element, int size, size_t count) {
  std::vector<float> sum(count);
  for (int rank = 0; rank < size; ++rank) {
    std::vector<float> next(count);
    for (size_t i = 0; i < count; ++i) next[i] = value(rank, i);
    next = unpacked(element, packed(element, next));
    for (size_t i = 0; i < count; ++i) sum[i] = rank == 0 ? next[i] : sum[i] + next[i];
    sum = unpacked(element, packed(element, sum));
  }
  return packed(element, sum);
}

void require(const base::Status& done) {
  if (!done) throw Error(done.failure().message());
}

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(what);
}

void check_sums(Collective& group) {
  for (const Element element : {Element::float32, Element::bfloat16, Element::float16}) {
    for (const size_t count : {0UL, 1UL, 2UL, 3UL, 511UL, 513UL, 1024UL, 7850UL, 250'001UL, 9'000'001UL}) {
      const bool more_than_a_segment = count > 1'000'000;
      if (more_than_a_segment && (element != Element::float32 || group.size() > 2)) continue;
      std::vector<float> mine(count);
      for (size_t i = 0; i < count; ++i) mine[i] = value(group.rank(), i);
      std::vector<std::byte> data = packed(element, mine);
      require(group.all_reduce(data.data(), count, element));
      require(data == sum_in_order(element, group.size(), count),
              fmt::format("sum of {} elements of {} bytes", count, collective::bytes_of(element)));
    }
  }
}

void check_copies(Collective& group) {
  for (const size_t bytes : {0UL, 1UL, 5UL, 2048UL, 2049UL, 3'000'001UL}) {
    for (int root = 0; root < group.size(); ++root) {
      std::vector<std::byte> data(bytes, std::byte(group.rank() == root ? 7 + root : 99));
      require(group.broadcast(data, root));
      require(data == std::vector<std::byte>(bytes, std::byte(7 + root)), fmt::format("broadcast of {} bytes", bytes));
    }
    const std::vector<std::byte> mine(bytes, std::byte(group.rank() + 1));
    std::vector<std::byte> all(bytes * static_cast<size_t>(group.size()));
    require(group.all_gather(mine, all));
    for (size_t i = 0; i < all.size(); ++i) require(all[i] == std::byte(i / bytes + 1), "all-gather");
  }
  require(group.barrier());
}

/// Waits for the last rank, which does not take part in the second round.
void wait_in_vain(Collective& group, const std::string& what) {
  std::vector<float> data(5000, 1.0F);
  require(group.all_reduce(data));
  if (group.rank() == group.size() - 1) {
    if (what == "killed") std::raise(SIGKILL);
    if (what == "stopped") std::raise(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::seconds(600));
  }
  const base::Status done = group.all_reduce(data);
  require(!group.barrier().ok(), "the group goes on after a failure");
  require(done);
}

int run(const std::string& what, int expected, double deadline) {
  const auto group = make_mpi_group(expected, {Seconds(deadline), {}});
  if (what == "sums") {
    check_sums(*group);
    check_copies(*group);
    require(group->size() == 1 || group->traffic().sent > 0, "no traffic");
    std::printf("rank %d of %d is right\n", group->rank(), group->size());
    return 0;
  }
  wait_in_vain(*group, what);
  return 0;
}

}  // namespace
}  // namespace lockstep::collective

int main(int argc, char** argv) {
  try {
    if (argc == 4 && std::string(argv[1]) == "late" && std::string(std::getenv("OMPI_COMM_WORLD_RANK")) == "1") {
      std::this_thread::sleep_for(std::chrono::seconds(600));
    }
    if (argc != 4) throw lockstep::UsageError("usage: mpi_rank WHAT RANKS DEADLINE");
    return lockstep::collective::run(argv[1], std::atoi(argv[2]), std::atof(argv[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_rank: %s\n", error.what());
    return 1;
  }
}
