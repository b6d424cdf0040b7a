// A process that uses a known amount of a resource, measured by its own clocks:
//    known_load cpu SHARE SECONDS | memory BYTES | disk BYTES FILE | loopback BYTES | tree SECONDS It says "ready",
// works after a line on standard input, prints the amount, and ends after another line.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace {

double clock_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double cpu_now() { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

void burn(double seconds) {
  const double until = cpu_now() + seconds;
  while (cpu_now() < until) {
  }
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void wait_for_line() {
  char c = 0;
  while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n') {
  }
}

/// Runs until it has used that share of `seconds`, which takes longer on a busy machine.
double duty_cycle(double share, double seconds) {
  constexpr double kTurn = 0.02;
  const double before = cpu_now();
  while (cpu_now() - before < share * seconds) {
    burn(share * kTurn);
    usleep(static_cast<useconds_t>(1e6 * (1 - share) * kTurn));
  }
  return cpu_now() - before;
}

double touch(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  for (size_t i = 0; i < bytes; i += 1024) static_cast<volatile char*>(memory)[i] = 1;
  return static_cast<double>(bytes);
}

double write_to_disk(size_t bytes, const char* path) {
  const int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  if (file < 0) fail("open");
  const std::vector<char> block(size_t{1} << 20, 'x');
  for (size_t written = 0; written < bytes; written += block.size()) {
    if (write(file, block.data(), block.size()) != static_cast<ssize_t>(block.size())) fail("write");
  }
  if (fsync(file) != 0) fail("fsync");
  close(file);
  return static_cast<double>(bytes);
}

double send_over_loopback(size_t bytes) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* name = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, name, length) != 0 || listen(listener, 1) != 0) fail("listen");
  getsockname(listener, name, &length);
  std::thread reader([listener] {
    const int from = accept(listener, nullptr, nullptr);
    std::vector<char> block(size_t{1} << 16);
    while (read(from, block.data(), block.size()) > 0) {
    }
    close(from);
  });
  const int to = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(to, name, length) != 0) fail("connect");
  const std::vector<char> block(size_t{1} << 16, 'x');
  for (size_t sent = 0; sent < bytes; sent += block.size()) {
    if (write(to, block.data(), block.size()) != static_cast<ssize_t>(block.size())) fail("send");
  }
  close(to);
  reader.join();
  close(listener);
  return static_cast<double>(bytes);
}

/// Runs children after and beside each other, one with its own child; all end.
double run_tree(double seconds) {
  const double before = cpu_now();
  for (int round = 0; round < 3; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 2; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        if (i == 0 && fork() == 0) {
          burn(seconds);
          _exit(0);
        }
        burn(seconds);
        if (i == 0) wait(nullptr);
        _exit(0);
      }
      children.push_back(child);
    }
    burn(seconds / 2);
    for (const pid_t child : children) waitpid(child, nullptr, 0);
  }
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return cpu_now() - before + static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

double work(const std::vector<std::string>& words) {
  if (words[0] == "cpu") return duty_cycle(std::stod(words[1]), std::stod(words[2]));
  if (words[0] == "memory") return touch(std::stoul(words[1]));
  if (words[0] == "disk") return write_to_disk(std::stoul(words[1]), words[2].c_str());
  if (words[0] == "loopback") return send_over_loopback(std::stoul(words[1]));
  if (words[0] == "tree") return run_tree(std::stod(words[1]));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::puts("ready");
  wait_for_line();
  std::printf("%.9g\n", work({argv + 1, argv + argc}));
  wait_for_line();
  return 7;
}
