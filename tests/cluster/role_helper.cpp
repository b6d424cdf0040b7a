// A program that carries out its arguments in order, as a stand-in for a role that behaves well or badly:
//   out=TEXT err=TEXT  a line on standard output or error        raw=TEXT   the same without line end
//   pid                a line with its number                    fork       a child that stays; a line with its number
//   long=N garbage     a long line, a line of odd bytes          close      closes standard output
//   ignore=N on=N:CODE a signal is ignored, or ends it so        first=FILE continues at `again` if FILE exists
//   wait until=FILE    forever, or until the file exists      kill=N exit=CODE
//   echo               the first line of standard input that is not empty
// `under WORDS...` runs itself with these words as the far end of a launcher, which may be silent for LOCKSTEP_SILENCE
// milliseconds (an environment variable); its role may be stopped for LOCKSTEP_STOPPED milliseconds. `supervise COUNT
// WORDS...` runs COUNT workers of itself with these words under a supervisor that kills what is stopped for 0.1 s.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "launch/supervisor.h"
#include "launch/under_launcher.h"
#include "process/caught_signals.h"

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

int code_of_signal[NSIG];

void end_with_code(int signal) { _exit(code_of_signal[signal]); }

void say(std::FILE* stream, const std::string& text) {
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

[[noreturn]] void wait_for_ever() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

void fork_one() {
  const pid_t child = fork();
  if (child == 0) wait_for_ever();
  say(stdout, "child " + std::to_string(child) + "\n");
}

void wait_until(const std::string& file) {
  while (!fs::exists(file)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void echo() {
  std::string line;
  for (int c = std::getchar(); c != EOF && (c != '\n' || line.empty()); c = std::getchar()) {
    if (c != '\n') line += static_cast<char>(c);
  }
  say(stdout, line + "\n");
}

void heed(const std::string& value) {
  const size_t colon = value.find(':');
  const int number = std::stoi(value.substr(0, colon));
  code_of_signal[number] = std::stoi(value.substr(colon + 1));
  std::signal(number, end_with_code);
}

void act(const std::string& name, const std::string& value) {
  if (name == "out") say(stdout, value + "\n");
  if (name == "err") say(stderr, value + "\n");
  if (name == "raw") say(stdout, value);
  if (name == "pid") say(stdout, "pid " + std::to_string(getpid()) + "\n");
  if (name == "fork") fork_one();
  if (name == "long") say(stdout, std::string(std::stoul(value), 'x') + "\n");
  if (name == "garbage") say(stdout, "\x1b[2J\x01\xff\xfe\xc3(\n");
  if (name == "close") fclose(stdout);
  if (name == "ignore") std::signal(std::stoi(value), SIG_IGN);
  if (name == "on") heed(value);
  if (name == "echo") echo();
  if (name == "wait") wait_for_ever();
  if (name == "until") wait_until(value);
  if (name == "kill") raise(std::stoi(value));
  if (name == "exit") _exit(std::stoi(value));
}

int play(const Words& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : words[i].substr(equals + 1);
    if (name == "first" && fs::exists(value)) {
      while (i + 1 < words.size() && words[i] != "again") ++i;
    } else if (name == "first") {
      std::ofstream(value) << "\n";
    } else {
      act(name, value);
    }
  }
  return 0;
}

int supervise(const std::string& self, int count, const Words& words) {
  using lockstep::launch::RoleEvent;
  std::vector<lockstep::launch::RoleProcess> roles;
  for (int i = 0; i < count; ++i) {
    lockstep::process::Command command;
    command.argv = {self};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    roles.push_back({{lockstep::cluster::Role::worker, i}, command});
  }
  const lockstep::process::CaughtSignals signals({SIGINT, SIGTERM, SIGHUP, SIGTSTP});
  lockstep::launch::SupervisorOptions options;
  options.signals = signals.fd();
  options.stopped = std::chrono::milliseconds(100);
  lockstep::launch::Supervisor supervisor(roles, options, [](const RoleEvent& event) {
    if (event.kind == RoleEvent::Kind::out_line) say(stdout, event.text + "\n");
  });
  return supervisor.run().code;
}

int under(const std::string& self, Words words) {
  lockstep::launch::UnderLauncherOptions options;
  const char* silence = std::getenv("LOCKSTEP_SILENCE");
  if (silence != nullptr) options.silence = std::chrono::milliseconds(std::stoi(silence));
  const char* stopped = std::getenv("LOCKSTEP_STOPPED");
  if (stopped != nullptr) options.stopped = std::chrono::milliseconds(std::stoi(stopped));
  words[0] = self;
  return lockstep::launch::run_under_launcher(words, options);
}

}  // namespace

int main(int argc, char** argv) {
  const Words words(argv + 1, argv + argc);
  if (words.size() > 2 && words[0] == "supervise") {
    return supervise(argv[0], std::stoi(words[1]), Words(words.begin() + 2, words.end()));
  }
  if (!words.empty() && words[0] == "under") return under(argv[0], words);
  return play(words);
}
