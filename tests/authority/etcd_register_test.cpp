// The register in a real etcd, as Debian packages it: compare-and-swap, its loss and return, passwords, TLS.
#include "authority/etcd_register.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "authority/race.h"
#include "cluster/certificate.h"
#include "lockstep/error.h"
#include "process/child_process.h"

namespace lockstep::authority {
namespace {

using ::testing::HasSubstr;

/// A port that nobody uses now.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

class Etcd : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v etcd etcdctl > /dev/null") != 0) GTEST_SKIP() << "etcd-server, etcd-client are missing";
    std::string name = std::filesystem::temp_directory_path() / "lockstep-etcd-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    port = free_port();
    peer_port = free_port();
  }
  void TearDown() override {
    server.reset();
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }
  void start() {
    const std::string scheme = flags.empty() ? "http" : "https";
    const std::string here = scheme + "://127.0.0.1:" + std::to_string(port);
    const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port);
    process::Command command;
    command.program = "etcd";
    command.argv = {"etcd",
                    "--data-dir=" + folder + "/data",
                    "--listen-client-urls=" + here,
                    "--advertise-client-urls=" + here,
                    "--listen-peer-urls=" + peer,
                    "--initial-advertise-peer-urls=" + peer,
                    "--initial-cluster=default=" + peer,
                    "--unsafe-no-fsync",
                    "--logger=zap",
                    "--log-level=fatal"};
    command.argv.insert(command.argv.end(), flags.begin(), flags.end());
    server = std::make_unique<process::Child>(command);
  }
  [[nodiscard]] EtcdOptions options() const {
    EtcdOptions options;
    options.address = parse_etcd_address("etcd://127.0.0.1:" + std::to_string(port));
    options.job = "the-job";
    return options;
  }
  /// Asks until it answers; a server needs a moment to start.
  static Answer answer_of(Register& client) {
    Answer answer;
    for (int tries = 0; tries < 600; ++tries) {
      answer = read_now(client);
      if (answer.outcome != Outcome::unanswered) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return answer;
  }
  void etcdctl(const std::string& words) const {
    const std::string command =
        "ETCDCTL_API=3 etcdctl --endpoints=http://127.0.0.1:" + std::to_string(port) + " " + words + " > /dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder + "/" + name) << text; }

  std::string folder;
  int port = 0;
  int peer_port = 0;
  std::vector<std::string> flags;  ///< of TLS
  std::unique_ptr<process::Child> server;
};

TEST_F(Etcd, EachNumberHasOneWinnerAndItIsKeptWhileEtcdIsAway) {
  start();
  std::vector<std::unique_ptr<Register>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(std::make_unique<EtcdRegister>(options()));
  ASSERT_EQ(answer_of(*clients[0]).group, Group{});
  expect_one_winner_each(clients, 50);
  EXPECT_EQ(read_now(*clients[1]).group.number, 50U);

  server.reset();
  const Answer away = read_now(*clients[0]);
  EXPECT_EQ(away.outcome, Outcome::unanswered);
  EXPECT_THAT(away.failure.message(), HasSubstr("etcd at 127.0.0.1:" + std::to_string(port) + ": "));
  start();
  const Answer back = answer_of(*clients[0]);
  EXPECT_EQ(back.outcome, Outcome::present);
  EXPECT_EQ(back.group.number, 50U);
}

TEST_F(Etcd, OneOfSeveralServersIsEnough) {
  start();
  EtcdOptions several = options();
  several.address =
      parse_etcd_address("etcd://127.0.0.1:" + std::to_string(free_port()) + ",localhost:" + std::to_string(port));
  EtcdRegister client(several);
  EXPECT_EQ(answer_of(client).outcome, Outcome::present);
  EXPECT_EQ(swap_now(client, {}, {1, 5, {{0, 9}}}).outcome, Outcome::won);
}

TEST_F(Etcd, AWrongPasswordIsSaidAndARightOneCounts) {
  start();
  EtcdRegister nobody(options());
  ASSERT_EQ(answer_of(nobody).outcome, Outcome::present);
  etcdctl("user add root:secret");
  etcdctl("role add root");
  etcdctl("user grant-role root root");
  etcdctl("auth enable");
  const Answer refused = read_now(nobody);
  EXPECT_EQ(refused.outcome, Outcome::refused);
  EXPECT_THAT(refused.failure.message(), HasSubstr("user name is empty"));

  EtcdOptions wrong = options();
  wrong.user = "root";
  wrong.password = "sesame";
  EtcdRegister liar(wrong);
  EXPECT_EQ(read_now(liar).outcome, Outcome::refused);
  wrong.password = "secret";
  EtcdRegister root(wrong);
  EXPECT_EQ(swap_now(root, {}, {1, 5, {{0, 9}}}).outcome, Outcome::won);
  EXPECT_EQ(read_now(root).group.number, 1U);
}

TEST_F(Etcd, OverTlsBothSidesShowCertificates) {
  const cluster::KeyPair authority = cluster::make_authority();
  const cluster::KeyPair node = cluster::make_node(authority, {.subject = "n", .hosts = {"127.0.0.1"}, .roles = {}});
  write("ca.pem", authority.certificate);
  write("node.pem", node.certificate);
  write("node.key", node.key);
  write("other.pem", cluster::make_authority().certificate);
  flags = {"--cert-file=" + folder + "/node.pem", "--key-file=" + folder + "/node.key",
           "--trusted-ca-file=" + folder + "/ca.pem", "--client-cert-auth"};
  start();
  EtcdOptions with = options();
  with.authority = folder + "/ca.pem";
  with.certificate = folder + "/node.pem";
  with.key = folder + "/node.key";
  EtcdRegister client(with);
  EXPECT_EQ(answer_of(client).outcome, Outcome::present);
  EXPECT_EQ(swap_now(client, {}, {1, 5, {{0, 9}}}).outcome, Outcome::won);

  EtcdOptions other = with;
  other.authority = folder + "/other.pem";
  EtcdRegister distrusts(other);
  const Answer refused = read_now(distrusts);
  EXPECT_EQ(refused.outcome, Outcome::refused);
  EXPECT_THAT(refused.failure.message(), HasSubstr("its certificate is not trusted"));
  EtcdOptions without = with;
  without.certificate = without.key = "";
  EtcdRegister unknown(without);
  EXPECT_EQ(read_now(unknown).outcome, Outcome::unanswered);
}

/// Takes connections, and answers each with a beginning and then a drop from time to time, until the other side hangs
/// up or there have been very many.
class DrippingServer {
 public:
  DrippingServer(std::string beginning, std::string drop) : beginning_(std::move(beginning)), drop_(std::move(drop)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (int there = 0; (there = ::accept(listener_, nullptr, nullptr)) >= 0; ::close(there)) drip(there);
    });
  }
  ~DrippingServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  [[nodiscard]] EtcdOptions options() const {
    EtcdOptions options;
    options.address = parse_etcd_address("etcd://127.0.0.1:" + std::to_string(port_));
    options.job = "the-job";
    options.within = std::chrono::milliseconds(600);
    return options;
  }
  [[nodiscard]] bool drips() const { return drips_; }
  /// True if some other side did not hang up.
  [[nodiscard]] bool ran_dry() const { return ran_dry_; }

 private:
  void drip(int there) {
    EXPECT_EQ(::send(there, beginning_.data(), beginning_.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(beginning_.size()));
    for (int i = 0; i < 1000; ++i) {
      if (::send(there, drop_.data(), drop_.size(), MSG_NOSIGNAL) < 0) return;
      drips_ = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ran_dry_ = true;
  }
  const std::string beginning_;
  const std::string drop_;
  const int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port_ = 0;
  std::atomic<bool> drips_ = false;
  std::atomic<bool> ran_dry_ = false;
  std::thread thread_;
};

/// A file with a certificate to trust.
struct AuthorityFile {
  AuthorityFile() {
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    name = folder + "/ca.pem";
    std::ofstream(name) << cluster::make_authority().certificate;
  }
  ~AuthorityFile() { std::filesystem::remove_all(folder); }
  AuthorityFile(const AuthorityFile&) = delete;
  AuthorityFile& operator=(const AuthorityFile&) = delete;

  std::string folder = std::filesystem::temp_directory_path() / "lockstep-etcd-XXXXXX";
  std::string name;
};

TEST(EtcdTime, AServerThatDripsCannotHoldAQuestion) {
  DrippingServer headers("HTTP/1.1 200 OK\r\n", "X-More: to come\r\n");
  DrippingServer body("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", " ");
  DrippingServer handshake({"\x16\x03\x03\x40\x00", 5}, std::string(1, '\0'));
  EtcdOptions with_tls = handshake.options();
  const AuthorityFile authority;
  with_tls.authority = authority.name;
  EtcdRegister first(headers.options());
  EtcdRegister second(body.options());
  EtcdRegister third(with_tls);
  for (Register* const client :
       {static_cast<Register*>(&first), static_cast<Register*>(&second), static_cast<Register*>(&third)}) {
    const Answer answer = read_now(*client);
    EXPECT_EQ(answer.outcome, Outcome::unanswered);
    EXPECT_THAT(answer.failure.message(), ::testing::EndsWith(": no answer"));
  }
  for (const DrippingServer* const server : {&headers, &body, &handshake}) {
    EXPECT_TRUE(server->drips());
    EXPECT_FALSE(server->ran_dry());
  }
}

TEST(EtcdTime, ARegisterThatEndsDoesNotWaitForAHandshake) {
  DrippingServer handshake({"\x16\x03\x03\x40\x00", 5}, std::string(1, '\0'));
  EtcdOptions options = handshake.options();
  const AuthorityFile authority;
  options.authority = authority.name;
  options.within = std::chrono::hours(1);
  {
    EtcdRegister client(options);
    client.read([](const Answer&) { ADD_FAILURE() << "no answer is told after the end"; });
    while (!handshake.drips()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(handshake.ran_dry());
}

TEST(EtcdFiles, AreCheckedAtTheStart) {
  EtcdOptions options;
  options.authority = "/nowhere/ca.pem";
  EXPECT_THROW(EtcdRegister::check_files(options), UsageError);
  options.authority = "/proc/self/status";
  options.certificate = "/proc/self/status";
  EXPECT_THROW(EtcdRegister::check_files(options), UsageError) << "a certificate without a key";
  options.key = "/proc/self/status";
  EXPECT_THROW(EtcdRegister::check_files(options), UsageError) << "not PEM";
}

}  // namespace
}  // namespace lockstep::authority
