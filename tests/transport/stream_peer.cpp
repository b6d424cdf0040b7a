// A process for tests to kill: `echo` serves and prints its address, `send ADDRESS` sends frames without end, `stand
// ADDRESS` connects and never reads.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "transport/streams.h"

int main(int argc, char** argv) {
  using namespace lockstep::transport;
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "echo") {
    const Server server(testing::any_port(), testing::echo);
    std::printf("%s\n", testing::address_of(server).c_str());
    std::fflush(stdout);
    pause();
  }
  const auto stream = testing::connected(argv[2]);
  std::printf("connected\n");
  std::fflush(stdout);
  if (what == "stand") pause();
  while (stream->write({}, testing::pattern(10'000))) {
  }
  return 0;
}
