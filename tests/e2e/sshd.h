// An ssh server for tests on loopback, whose hosts are folders of this machine.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "e2e/support.h"

namespace lockstep::testing {

inline constexpr const char* kServer = "/usr/sbin/sshd";

inline void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

template <class F>
bool eventually(F&& condition, Process::Seconds patience = Process::Seconds(120)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// An ssh server with its own keys, on a free port.
class Sshd {
 public:
  explicit Sshd(const std::string& folder) : folder_(folder) {
    for (const char* key : {"host", "user"}) {
      Process("/usr/bin/ssh-keygen", {"-q", "-t", "ed25519", "-N", "", "-f", folder + "/" + key}).finish();
    }
    if (geteuid() == 0) std::filesystem::create_directories("/run/sshd");
    for (int attempt = 0; attempt < 20 && !server_; ++attempt) start(20000 + (getpid() + attempt * 997) % 12000);
  }

  [[nodiscard]] bool running() const { return server_ != nullptr; }
  /// Returns the command for --ssh: a client that knows only the hosts a and b.
  [[nodiscard]] std::string client() const { return "ssh -F " + folder_ + "/client"; }

 private:
  void start(int port) {
    write_text(folder_ + "/server", "Port " + std::to_string(port) + "\nListenAddress 127.0.0.1\nHostKey " + folder_ +
                                        "/host\n" + "AuthorizedKeysFile " + folder_ +
                                        "/user.pub\nPidFile none\nUsePAM no\nStrictModes no\n" +
                                        "PermitRootLogin yes\nMaxStartups 100\n");
    write_text(folder_ + "/client", "Host a b\n  HostName 127.0.0.1\n  Port " + std::to_string(port) +
                                        "\nHost nobody\n  HostName 127.0.0.1\n" + "  Port 1\nHost *\n  IdentityFile " +
                                        folder_ + "/user\n  IdentitiesOnly yes\n" +
                                        "  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n" +
                                        "  KexAlgorithms curve25519-sha256\n");  // the quickest
    auto server = std::make_unique<Process>(kServer, std::vector<std::string>{"-D", "-e", "-f", folder_ + "/server"});
    const auto answers = [&] {
      return Process("/usr/bin/ssh", {"-F", folder_ + "/client", "-o", "BatchMode=yes", "a", "true"}).finish().code ==
             0;
    };
    if (eventually(answers, Process::Seconds(20))) server_ = std::move(server);
  }

  std::string folder_;
  std::unique_ptr<Process> server_;
};

/// Tests that share a server; skipped if there is no sshd.
class SshTest : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    if (!std::filesystem::exists(kServer)) return;
    keys_ = std::make_unique<TempDir>();
    sshd_ = std::make_unique<Sshd>(keys_->path());
  }
  static void TearDownTestSuite() {
    sshd_.reset();
    keys_.reset();
  }
  void SetUp() override {
    if (!sshd_) GTEST_SKIP() << "no " << kServer << "; the package openssh-server has it";
    ASSERT_TRUE(sshd_->running());
  }
  [[nodiscard]] static std::string ssh() { return sshd_->client(); }

 private:
  static inline std::unique_ptr<TempDir> keys_;
  static inline std::unique_ptr<Sshd> sshd_;
};

}  // namespace lockstep::testing
