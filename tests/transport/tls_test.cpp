// Mutual TLS: who has a key of the same authority is let in, everyone else is told why not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temp_dir.h"
#include "transport/keys.h"
#include "transport/streams.h"

namespace lockstep::transport {
namespace {

using std::chrono::milliseconds;
using testing::address_of;
using ::testing::AllOf;
using testing::connected;
using testing::echo;
using ::testing::HasSubstr;
using testing::pattern;
using testing::payload_of;

void shell(const std::string& command) {
  if (std::system((command + " > /dev/null 2>&1").c_str()) != 0) throw Error("failed: " + command);
}

/// Two authorities, each with keys of a node, made once for all tests.
class Tls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<lockstep::testing::TempDir>();
    make_authority("ours");
    make_authority("theirs");
    make_node("ours", "lockstep", ours());
    make_node("theirs", "lockstep", theirs());
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static void make_authority(const std::string& name) {
    const std::string path = *folder_ / name;
    shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" + name +
          " -keyout " + path + ".key -out " + path + ".pem");
  }
  static void make_node(const std::string& authority, const std::string& name, const std::string& folder) {
    std::filesystem::create_directories(folder);
    const std::string ca = *folder_ / authority;
    shell("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=node -keyout " + folder +
          "/node.key -out " + folder + "/node.csr && printf 'subjectAltName=DNS:" + name + "' > " + folder +
          "/san && openssl x509 -req -in " + folder + "/node.csr -CA " + ca + ".pem -CAkey " + ca +
          ".key -CAcreateserial -days 2 -extfile " + folder + "/san -out " + folder + "/node.pem");
    std::filesystem::copy_file(ca + ".pem", folder + "/ca.pem", std::filesystem::copy_options::overwrite_existing);
  }
  static std::string ours() { return *folder_ / "node-ours"; }
  static std::string theirs() { return *folder_ / "node-theirs"; }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static ServerOptions server_with(const std::string& keys) { return {.address = "127.0.0.1:0", .security = {keys}}; }

  /// With more patience where the reason was not known yet: a busy machine takes longer to shake hands.
  static std::string refusal(const Server& server, const std::string& keys, const std::string& reason) {
    std::string said;
    for (const int patience : {400, 2'000, 10'000, 50'000}) {
      const auto stream = connect(address_of(server), {.security = {keys}, .patience = milliseconds(patience)});
      if (stream) return "";
      said = stream.failure().message;
      if (said.find(reason) != std::string::npos) break;
    }
    return said;
  }

 private:
  static std::unique_ptr<lockstep::testing::TempDir> folder_;
};

std::unique_ptr<lockstep::testing::TempDir> Tls::folder_;

TEST_F(Tls, NodesOfOneAuthorityTalk) {
  Server server(server_with(ours()), echo);
  const auto stream = connected(server, {.security = {ours()}});
  for (const size_t size : {0, 1000, 3 << 20}) {
    ASSERT_TRUE(stream->write({}, pattern(size)));
    const auto frame = stream->read();
    ASSERT_TRUE(frame) << frame.failure().message;
    EXPECT_EQ(payload_of(frame.value()), pattern(size));
  }
}

TEST_F(Tls, APeerOfAnotherAuthorityIsRefusedAndNamed) {
  Server server(server_with(ours()), echo);
  const std::string reason = "not of our certificate authority";
  EXPECT_THAT(refusal(server, theirs(), reason), AllOf(HasSubstr(address_of(server)), HasSubstr(reason)));
}

TEST_F(Tls, AClientThatTrustsUsButHasAKeyOfAnotherAuthorityIsRefused) {
  // Such a folder would be refused here already; a hostile client does not ask.
  Server server(server_with(theirs()), echo);
  const std::string mixed = path("mixed");
  std::filesystem::create_directories(mixed);
  std::filesystem::copy(ours() + "/node.pem", mixed + "/node.pem");
  std::filesystem::copy(ours() + "/node.key", mixed + "/node.key");
  // Both certificates in ca.pem: ours, so that the folder looks right, and theirs, so that the server is trusted.
  shell("(cat " + ours() + "/ca.pem " + theirs() + "/ca.pem > " + mixed + "/ca.pem)");
  const std::string reason = "does not accept our key";
  EXPECT_THAT(refusal(server, mixed, reason), HasSubstr(reason));
}

TEST_F(Tls, AClientWithoutTlsIsRefused) {
  Server server(server_with(ours()), echo);
  const std::string reason = "it wants TLS";
  EXPECT_THAT(refusal(server, "", reason), HasSubstr(reason));
}

TEST_F(Tls, AServerWithoutTlsIsNotTalkedTo) {
  Server server(server_with(""), echo);
  const std::string reason = "does not speak TLS";
  EXPECT_THAT(refusal(server, ours(), reason), HasSubstr(reason));
}

TEST_F(Tls, RefusalsLeaveTheServerServingAndPrintNothing) {
  ::testing::internal::CaptureStderr();
  {
    Server server(server_with(ours()), echo);
    (void)refusal(server, theirs(), "not of our certificate authority");
    (void)refusal(server, "", "it wants TLS");
    EXPECT_TRUE(connected(server, {.security = {ours()}})->write({}));
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

std::string complaint(const std::string& folder) {
  try {
    (void)read_keys(folder);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST_F(Tls, DamagedOrMissingKeysAreNamed) {
  EXPECT_EQ(complaint(ours()), "");
  EXPECT_THAT(complaint(path("nowhere")), HasSubstr(path("nowhere") + "/ca.pem"));
  const std::string broken = path("broken");
  const auto fresh = [&] {
    std::filesystem::remove_all(broken);
    std::filesystem::copy(ours(), broken);
  };
  fresh();
  std::ofstream(broken + "/node.pem") << "nonsense";
  EXPECT_THAT(complaint(broken), HasSubstr("node.pem is not a certificate"));
  fresh();
  std::ofstream(broken + "/node.key") << "nonsense";
  EXPECT_THAT(complaint(broken), HasSubstr("node.key is not a private key"));
  fresh();
  std::filesystem::copy(theirs() + "/node.key", broken + "/node.key",
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(complaint(broken), HasSubstr("node.key is not the key of"));
  fresh();
  std::filesystem::copy(theirs() + "/ca.pem", broken + "/ca.pem", std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(complaint(broken), HasSubstr("was not made by"));
  make_node("ours", "elsewhere", broken);
  EXPECT_THAT(complaint(broken), HasSubstr("is not for the name lockstep"));
  EXPECT_THROW(Server(server_with(broken), echo), UsageError);
  EXPECT_THROW((void)connect("127.0.0.1:1", {.security = {broken}}), UsageError);
}

}  // namespace
}  // namespace lockstep::transport
