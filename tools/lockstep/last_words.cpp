#include "last_words.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "base/limits.h"

namespace lockstep::tools {
namespace {

constexpr size_t kStack = 8UL << 20;  ///< bytes of address space for a thread
constexpr size_t kLongestWords = 1024;

/// Two last messages: a line for people and one for the parent process. They are made in advance, because a failing
/// process may have no memory left for them.
struct Words {
  std::array<char, kLongestWords> line{};
  std::array<char, kLongestWords> json{};  ///< empty: no parent process reads it
};

// A signal handler can reach nothing but globals.
Words no_memory;
Words no_thread;
std::atomic_flag spoken = ATOMIC_FLAG_INIT;
std::array<char, 64> role_name{};
std::array<char, PATH_MAX> failure_file{};
static_assert(std::atomic<bool>::is_always_lock_free);

template <size_t n>
void keep(std::array<char, n>& place, const std::string& text) {
  place.fill(0);
  std::memcpy(place.data(), text.data(), std::min(text.size(), place.size() - 1));
}

Words words_of(launch::RoleFailure failure) {
  Words words;
  failure.role = role_name.data();
  keep(words.line, std::string(program_invocation_short_name) + ": " + failure.text + "\n");
  if (role_name[0] != 0 || failure_file[0] != 0) keep(words.json, launch::to_json(failure) + "\n");
  return words;
}

void prepare() {
  launch::RoleFailure failure;
  failure.kind = launch::RoleFailure::Kind::limit;
  failure.text = base::memory_limit_text();
  no_memory = words_of(failure);
  failure.text = base::thread_limit_text();
  no_thread = words_of(failure);
}

void write_all(int fd, const char* text) { (void)!::write(fd, text, std::strlen(text)); }

void write_file(const char* text) {
  if (failure_file[0] == 0) return;
  const int fd = ::open(failure_file.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return;
  write_all(fd, text);
  ::close(fd);
}

/// Makes only calls that are allowed in a signal handler.
[[noreturn]] void end_with(const Words& words) {
  if (spoken.test_and_set()) {
    for (;;) pause();  // another thread is already ending the process
  }
  if (role_name[0] != 0) write_all(STDOUT_FILENO, words.json.data());
  write_file(words.json.data());
  write_all(STDERR_FILENO, words.line.data());
  _exit(1);
}

bool memory_is_out() {
  void* space = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return true;
  munmap(space, kStack);
  return false;
}

bool threads_are_out() {
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) _exit(0);
  if (child > 0) waitpid(static_cast<pid_t>(child), nullptr, 0);
  return child < 0 && errno == EAGAIN;
}

/// Reports an abort of a library that got no memory or no thread. Leaves any other abort to the signal.
void on_abort(int number) {
  if (memory_is_out()) end_with(no_memory);
  if (threads_are_out()) end_with(no_thread);
  std::signal(number, SIG_DFL);
  raise(number);  // also ends a process that got the signal from outside
}

/// Runs when memory was refused, before any cleanup: library threads without memory would keep the others from ending.
/// A single request that was too large still throws, as it does without a handler.
void on_refused_memory() {
  if (memory_is_out()) end_with(no_memory);
  throw std::bad_alloc();
}

[[noreturn]] void on_terminate() noexcept {
  if (!std::current_exception()) std::abort();
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    end_with(no_memory);
  } catch (const std::exception& error) {
    try {
      end_with(words_of(launch::failure_of(error)));
    } catch (const std::bad_alloc&) {
      end_with(no_memory);
    }
  } catch (...) {
    std::abort();
  }
}

/// Runs when a thread was refused to `caller`. std::thread throws, and the process cleans up. A library such as gRPC
/// may report nothing and wait for that thread for ever during cleanup: then the program ends here.
[[maybe_unused]] void on_refused_thread(const void* caller) {
  Dl_info info{};
  const bool throws = dladdr(caller, &info) != 0 && std::strstr(info.dli_fname, "libstdc++") != nullptr;
  if (!throws && no_thread.line[0] != 0) end_with(no_thread);
}

}  // namespace

void install_last_words() {
  prepare();
  std::set_new_handler(on_refused_memory);
  std::set_terminate(on_terminate);
  std::signal(SIGABRT, on_abort);
}

void report_last_words(const std::string& role) {
  keep(role_name, role);
  prepare();
}

void report_failures_in(const std::string& file) {
  keep(failure_file, file);
  prepare();
}

void write_failure(const launch::RoleFailure& failure) noexcept {
  try {
    write_file((launch::to_json(failure) + "\n").c_str());
  } catch (const std::bad_alloc&) {
    write_file(no_memory.json.data());
  }
}

}  // namespace lockstep::tools

#ifndef LOCKSTEP_SANITIZED  // sanitizers have their own pthread_create
/// Replaces the system's function and calls it.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*call)(void*),
                              void* argument) {
  static const auto create = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  const int error = create(thread, attributes, call, argument);
  if (error == EAGAIN) lockstep::tools::on_refused_thread(__builtin_return_address(0));
  return error;
}
#endif
