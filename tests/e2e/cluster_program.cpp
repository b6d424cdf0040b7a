// The real command line as a launcher. Started as a role by a launcher, it runs the shell script in LOCKSTEP_PLAY
// instead, with its task in $task and its run's folder in $run.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "lockstep/program.h"

int main(int argc, char** argv) {
  std::string run;
  std::string task;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--task=")) task = word.substr(7);
    if (word.starts_with("--run-dir=")) run = word.substr(10);
    if (word.starts_with("--resume=")) run = word.substr(9);
  }
  if (task.empty()) return lockstep::run_program(argc, argv);
  setenv("task", task.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no other thread yet
  setenv("run", run.c_str(), 1);    // NOLINT(concurrency-mt-unsafe)
  std::string words;
  for (int i = 1; i < argc; ++i) words += std::string(argv[i]) + " ";
  setenv("words", words.c_str(), 1);                // NOLINT(concurrency-mt-unsafe)
  const char* play = std::getenv("LOCKSTEP_PLAY");  // NOLINT(concurrency-mt-unsafe)
  execl("/bin/sh", "sh", play, static_cast<char*>(nullptr));
  return 127;
}
