#include "crews.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/file.h"
#include "collective/gloo/gloo_engine.h"
#include "collective/in_process.h"
#include "collective/mpi/mpi_engine.h"

namespace lockstep::bench {
namespace {

using collective::GroupOptions;

void run_threads(int size, const GroupOptions& options, const Work& work) {
  const auto group = collective::make_in_process_group(size, options);
  std::vector<std::thread> others;
  for (size_t rank = 1; rank < group.size(); ++rank) others.emplace_back([&, rank] { work(*group[rank]); });
  work(*group[0]);
  for (std::thread& other : others) other.join();
}

void tell(const base::FileHandle& pipe, const std::string& text) {
  if (send(pipe.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    throw Error("a rank has ended");
  }
}

std::string hear(const base::FileHandle& pipe) {
  std::string text(1 << 16, '\0');
  const ssize_t got = recv(pipe.get(), text.data(), text.size(), 0);
  if (got <= 0) throw Error("a rank has ended");
  text.resize(static_cast<size_t>(got));
  return text;
}

void join_and_work(collective::Joining& joining, const std::vector<std::string>& addresses, const Work& work) {
  const auto group = joining.connect(addresses, [] { return false; }).value_or_throw();
  work(*group);
}

[[noreturn]] void member(const base::FileHandle& root, int rank, int size, const GroupOptions& options,
                         const Work& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    const auto joining = collective::join_over_gloo("127.0.0.1", rank, size, options);
    tell(root, joining->address());
    std::vector<std::string> addresses;
    for (int i = 0; i < size; ++i) addresses.push_back(hear(root));
    join_and_work(*joining, addresses, work);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", rank, error.what());
    _exit(1);
  }
  _exit(0);
}

void run_processes(int size, const GroupOptions& options, const Work& work) {
  std::vector<base::FileHandle> members;
  std::vector<pid_t> ids;
  for (int rank = 1; rank < size; ++rank) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) != 0) throw Error("no socket pair");
    members.emplace_back(ends[0]);
    const base::FileHandle root(ends[1]);
    ids.push_back(fork());
    if (ids.back() == 0) member(root, rank, size, options, work);
  }
  {
    const auto joining = collective::join_over_gloo("127.0.0.1", 0, size, options);
    std::vector<std::string> addresses{joining->address()};
    for (const base::FileHandle& pipe : members) addresses.push_back(hear(pipe));
    for (const base::FileHandle& pipe : members) {
      for (const std::string& address : addresses) tell(pipe, address);
    }
    join_and_work(*joining, addresses, work);
  }
  for (const pid_t id : ids) waitpid(id, nullptr, 0);
}

void run_rank(int size, const GroupOptions& options, const Work& work) {
  work(*collective::make_mpi_group(size, options));
}

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoi(text);
}

}  // namespace

Job job() { return {number_of("OMPI_COMM_WORLD_RANK", 0), number_of("OMPI_COMM_WORLD_SIZE", 1)}; }

std::vector<Crew> crews() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) return {{"mpi", run_rank}};
  return {{"inprocess", run_threads}, {"gloo", run_processes}};
}

}  // namespace lockstep::bench
