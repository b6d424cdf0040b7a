// Mutual TLS: a peer is accepted if its certificate is signed by our authority, valid today and names the peer's role.
// All others are refused, and both sides say why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/temp_dir.h"
#include "cluster/certificate.h"
#include "transport/keys.h"
#include "transport/openssl.h"
#include "transport/strangers.h"
#include "transport/streams.h"

namespace lockstep::transport {
namespace {

using cluster::KeyPair;
using std::chrono::milliseconds;
using testing::address_of;
using ::testing::AllOf;
using testing::connected;
using testing::echo;
using ::testing::ElementsAre;
using testing::eventually;
using testing::files_here;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::pattern;
using testing::payload_of;
using testing::threads_here;

/// Collects a server's lines about refused peers.
class Refused {
 public:
  void add(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    lines_.push_back(line);
  }
  std::vector<std::string> lines() {
    const std::scoped_lock lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

void tell(Stream& stream, const std::string& text) {
  const auto held = std::make_shared<std::string>(text);
  (void)stream.write({}, std::as_bytes(std::span(*held)), held);
}

std::string text_in(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

/// Returns the first bytes of a TLS client.
std::string client_hello() {
  const std::unique_ptr<SSL_CTX, OpensslDeleter<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
  const std::unique_ptr<SSL, OpensslDeleter<SSL_free>> client(SSL_new(context.get()));
  SSL_set_bio(client.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_connect(client.get());  // needs an answer, which never comes
  return text_in(SSL_get_wbio(client.get()));
}

class Tls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<lockstep::testing::TempDir>();
    ours_ = cluster::make_authority();
    theirs_ = cluster::make_authority();
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  /// Makes a folder of keys, once.
  static std::string keys(const std::string& name, const KeyPair& authority, const cluster::NodeNames& names,
                          const std::string& trusted = "") {
    const std::string folder = *folder_ / name;
    if (!std::filesystem::create_directories(folder)) return folder;
    const KeyPair node = cluster::make_node(authority, names);
    put(folder + "/ca.pem", authority.certificate + trusted);
    put(folder + "/node.pem", node.certificate);
    put(folder + "/node.key", node.key);
    return folder;
  }
  static std::string ps() { return keys("ps", ours_, {"n0", {}, {"ps:0"}}); }
  static std::string worker() { return keys("worker", ours_, {"n1", {}, {"worker:0", "worker:1"}}); }
  static std::string path(const std::string& name) { return *folder_ / name; }

  ServerOptions server_with(const std::string& keys) {
    return {.address = "127.0.0.1:0", .security = {keys}, .on_refused = [this](const std::string& line) {
              refused_.add(line);
            }};
  }

  /// Retries with more patience if the reason was not known yet: a busy machine takes longer for a handshake.
  static std::string refusal(const Server& server, const std::string& keys, const std::string& reason) {
    std::string said;
    for (const int patience : {400, 2'000, 10'000, 50'000}) {
      const auto stream =
          connect(address_of(server), {.security = {keys}, .role = "ps:0", .patience = milliseconds(patience)});
      if (stream) return "";
      said = stream.failure().message();
      if (said.find(reason) != std::string::npos) break;
    }
    return said;
  }
  std::string line_of_server() {
    EXPECT_TRUE(eventually([&] { return !refused_.lines().empty(); }));
    return refused_.lines().empty() ? "" : refused_.lines().front();
  }

  static KeyPair ours_;
  static KeyPair theirs_;
  Refused refused_;

 private:
  static std::unique_ptr<lockstep::testing::TempDir> folder_;
};

std::unique_ptr<lockstep::testing::TempDir> Tls::folder_;
KeyPair Tls::ours_;
KeyPair Tls::theirs_;

TEST_F(Tls, NodesOfOneAuthorityTalk) {
  Server server(server_with(ps()), echo);
  const auto stream = connected(server, {.security = {worker()}, .role = "ps:0"});
  for (const size_t size : {0, 1000, 3 << 20}) {
    ASSERT_TRUE(stream->write({}, pattern(size)));
    const auto frame = stream->read();
    ASSERT_TRUE(frame) << frame.failure().message();
    EXPECT_EQ(payload_of(frame.value()), pattern(size));
  }
  EXPECT_THAT(refused_.lines(), IsEmpty());
}

TEST_F(Tls, AServerWithTheKeyOfAnotherRoleIsNotTalkedTo) {
  Server server(server_with(worker()), echo);
  const std::string reason = "its certificate (CN=n1 for worker:0, worker:1) is not for ps:0";
  EXPECT_THAT(refusal(server, worker(), reason), AllOf(HasSubstr(address_of(server)), HasSubstr(reason)));
}

TEST_F(Tls, AHandlerLearnsWhichRolesThePeersCertificateIsFor) {
  Server server(server_with(ps()), [](Stream& stream) {
    tell(stream, stream.why_not("worker:1"));
    tell(stream, stream.why_not("worker:2"));
    tell(stream, stream.why_not("ps:0"));
  });
  const auto stream = connected(server, {.security = {worker()}, .role = "ps:0"});
  EXPECT_EQ(stream->read().value().text(), "");
  EXPECT_EQ(stream->read().value().text(), "its certificate (CN=n1 for worker:0, worker:1) is not for worker:2");
  EXPECT_THAT(stream->read().value().text(), HasSubstr("is not for ps:0"));
}

TEST_F(Tls, ASharedKeyMayActAsAnyRole) {
  const std::string shared = keys("shared", ours_, {"shared", {}, {kAnyRole}});
  Server server(server_with(shared), [](Stream& stream) { tell(stream, stream.why_not("worker:7")); });
  EXPECT_EQ(connected(server, {.security = {shared}, .role = "ps:0"})->read().value().text(), "");
}

TEST_F(Tls, APeerOfAnotherAuthorityIsRefusedAndNamed) {
  Server server(server_with(ps()), echo);
  const std::string reason = "is signed by another authority";
  const std::string other = keys("other", theirs_, {"n1", {}, {"worker:1"}});
  EXPECT_THAT(refusal(server, other, reason), AllOf(HasSubstr(address_of(server)), HasSubstr(reason)));
}

/// A hostile client accepts any server and shows any certificate.
TEST_F(Tls, AClientWhoseKeyIsOfAnotherAuthorityIsRefusedOnBothSides) {
  Server server(server_with(ps()), echo);
  const std::string mixed = keys("mixed", theirs_, {"n1", {}, {"worker:1"}}, ours_.certificate);
  const std::string reason = "does not accept our key (CN=n1 for worker:1, valid ";
  EXPECT_THAT(refusal(server, mixed, reason), HasSubstr(reason));
  EXPECT_THAT(line_of_server(),
              AllOf(HasSubstr("127.0.0.1:"), HasSubstr("(CN=n1 for worker:1) is signed by another authority: "
                                                       "'CN=lockstep authority ")));
  EXPECT_EQ(refused_.lines().size(), 1U) << "one line, however often it tries";
}

/// A peer with a right clock judges one with a wrong clock.
TEST_F(Tls, DatesRolesAndPurposeOfACertificateAreJudged) {
  const auto judged = [&](const cluster::NodeNames& names, const std::string& role = "ps:0") {
    return why_refused(cluster::make_node(ours_, names).certificate, ours_.certificate, Purpose::server, role);
  };
  EXPECT_EQ(judged({"n0", {}, {"ps:0"}}), "");
  EXPECT_THAT(judged({"n0", {}, {"ps:0"}, -10, -2}), HasSubstr("its certificate (CN=n0 for ps:0) expired on 20"));
  EXPECT_THAT(judged({"n0", {}, {"ps:0"}, 2, 10}), HasSubstr("(CN=n0 for ps:0) is valid from 20"));
  EXPECT_THAT(judged({"n0", {}, {"worker:0"}}), HasSubstr("is not for ps:0"));
  EXPECT_THAT(judged({"n0", {"lockstep"}, {}}), HasSubstr("made by an older version"));
  EXPECT_THAT(why_refused("", ours_.certificate, Purpose::client, ""), HasSubstr("shows no certificate"));
  const KeyPair node = cluster::make_node(ours_, {"n1", {}, {"worker:1"}});
  EXPECT_THAT(why_refused(cluster::make_node(node, {"forged", {}, {"ps:0"}}).certificate, ours_.certificate,
                          Purpose::server, "ps:0"),
              HasSubstr("is signed by another authority"));
}

/// OpenSSL's own client shows any certificate.
TEST_F(Tls, AClientWithAWrongDateOrWithoutRolesIsRefusedByTheServerWhichSaysWhy) {
  Server server(server_with(ps()), echo);
  const auto show = [&](const std::string& folder) {
    const std::string command = "openssl s_client -connect " + address_of(server) + " -alpn h2 -cert " + folder +
                                "/node.pem -key " + folder + "/node.key < /dev/null > /dev/null 2>&1";
    (void)!std::system(command.c_str());  // NOLINT
  };
  show(keys("late", ours_, {"late", {}, {"worker:1"}, -10, -2}));
  show(keys("early", ours_, {"early", {}, {"worker:1"}, 2, 10}));
  show(keys("old", ours_, {"old", {"lockstep"}, {}}));
  EXPECT_TRUE(eventually([&] { return refused_.lines().size() == 3; }));
  EXPECT_THAT(refused_.lines(), ElementsAre(HasSubstr("(CN=late for worker:1) expired on 20"),
                                            HasSubstr("(CN=early for worker:1) is valid from 20"),
                                            HasSubstr("(CN=old) names no roles: its keys were made by an older")));
}

TEST_F(Tls, AClientWithoutTlsIsRefused) {
  Server server(server_with(ps()), echo);
  const std::string reason = "it requires TLS";
  EXPECT_THAT(refusal(server, "", reason), HasSubstr(reason));
}

TEST_F(Tls, AServerWithoutTlsIsNotTalkedTo) {
  Server server(server_with(""), echo);
  const std::string reason = "does not use TLS";
  EXPECT_THAT(refusal(server, ps(), reason), HasSubstr(reason));
}

/// A connection hosted by gRPC costs two files in the server, a waiting one costs one.
TEST_F(Tls, AHandshakeThatDoesNotGoOnCostsASocketAndNoThread) {
  Server server(server_with(ps()), echo);
  EXPECT_TRUE(connected(server, {.security = {worker()}})->write({}));
  const size_t threads = threads_here();
  for (const std::string& bytes : {std::string("\x16"), std::string("\x16\x03\x01\x02\0\x01\0", 7)}) {
    const size_t files = files_here();
    const testing::Crowd crowd(server.port(), 100, bytes);
    EXPECT_TRUE(eventually([&] { return crowd.kept() <= 64; })) << crowd.kept();
    EXPECT_LE(threads_here(), threads + 2) << "gRPC may have made some of its own";
    EXPECT_LE(files_here(), files + 100 + 64 + 10);
    EXPECT_TRUE(connected(server, {.security = {worker()}})->write({}));
  }
}

TEST_F(Tls, AHandshakeThatComesInPiecesGoesOn) {
  Server server(server_with(ps()), echo);
  const base::FileHandle peer = testing::tcp_connection(server.port());
  const std::string hello = client_hello();
  for (const char byte : hello) {
    testing::send_some(peer, {byte});
    std::this_thread::sleep_for(milliseconds(1));
  }
  char answer = 0;
  ASSERT_EQ(recv(peer.get(), &answer, 1, 0), 1) << "the server has closed the connection";
  EXPECT_EQ(answer, '\x16');
}

TEST_F(Tls, RefusalsLeaveTheServerServingAndPrintNothing) {
  ::testing::internal::CaptureStderr();
  {
    Server server(server_with(ps()), echo);
    (void)refusal(server, keys("other", theirs_, {"n1", {}, {"worker:1"}}), "by another authority");
    (void)refusal(server, "", "it requires TLS");
    EXPECT_TRUE(connected(server, {.security = {worker()}})->write({}));
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Tls, KeysThatAreReplacedAreUsedForNewConnections) {
  const std::string folder = path("rotated");
  std::filesystem::copy(ps(), folder);
  Server server(server_with(folder), echo);
  const auto before = connected(server, {.security = {worker()}, .role = "ps:0"});
  for (const char* file : {"/node.pem", "/node.key"}) {
    std::filesystem::copy_file(worker() + file, folder + file, std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_TRUE(connected(server, {.security = {worker()}, .role = "worker:1"})->write({}));
  ASSERT_TRUE(before->write({}));
  EXPECT_TRUE(before->read());
}

/// While the authority changes, all nodes trust both until all have new keys.
TEST_F(Tls, NodesThatTrustTwoAuthoritiesTalkToThoseOfBoth) {
  const auto both = [&](const std::string& name, const KeyPair& authority, const std::string& role) {
    const KeyPair& other = &authority == &ours_ ? theirs_ : ours_;
    const std::string folder = keys(name, authority, {name, {}, {role}}, other.certificate);
    put(folder + "/ca.pem", ours_.certificate + theirs_.certificate);
    return folder;
  };
  const std::string old_ps = both("old-ps", ours_, "ps:0");
  const std::string new_ps = both("new-ps", theirs_, "ps:0");
  const std::string old_worker = both("old-worker", ours_, "worker:0");
  const std::string new_worker = both("new-worker", theirs_, "worker:0");
  for (const std::string& server_keys : {old_ps, new_ps}) {
    Server server(server_with(server_keys), echo);
    for (const std::string& worker_keys : {old_worker, new_worker}) {
      EXPECT_TRUE(connected(server, {.security = {worker_keys}, .role = "ps:0"})->write({}));
    }
  }
  Server server(server_with(ps()), echo);
  const std::string reason = "is signed by another authority";
  EXPECT_THAT(refusal(server, keys("newest", theirs_, {"n1", {}, {"worker:0"}}), reason), HasSubstr(reason));
}

std::string complaint(const std::string& folder, const std::string& role = "") {
  try {
    (void)read_keys({folder, role});
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

/// Makes the same certificate with another end date, signed again.
KeyPair ending_in(const KeyPair& authority, const KeyPair& node, int seconds) {
  const Certificate certificate = parse_certificate(node.certificate);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), seconds);
  X509_sign(certificate.get(), parse_key(authority.key).get(), EVP_sha256());
  const Bio text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(text.get(), certificate.get());
  return {text_in(text.get()), node.key};
}

TEST_F(Tls, AServerWhoseCertificateExpiresIsNotTalkedToAndBothSidesSayWhy) {
  const KeyPair node = cluster::make_node(ours_, {"brief", {}, {"ps:0"}});
  const std::string folder = keys("brief", ours_, {"brief", {}, {"ps:0"}});
  put(folder + "/node.key", node.key);
  std::unique_ptr<Server> server;
  for (int seconds = 1; !server; seconds *= 4) {  // a busy machine takes longer to start the server
    put(folder + "/node.pem", ending_in(ours_, node, seconds).certificate);
    try {
      server = std::make_unique<Server>(server_with(folder), echo);
    } catch (const UsageError&) {
      ASSERT_LT(seconds, 100);
    }
  }
  ASSERT_TRUE(eventually([&] { return !complaint(folder).empty(); }));
  const std::string reason = "its certificate (CN=brief for ps:0) expired on 20";
  EXPECT_THAT(refusal(*server, worker(), reason), AllOf(HasSubstr(address_of(*server)), HasSubstr(reason)));
  EXPECT_THAT(line_of_server(), HasSubstr("this server's certificate (CN=brief for ps:0) expired on 20"));
}

TEST_F(Tls, OwnKeysThatCannotBeUsedAreNamed) {
  EXPECT_EQ(complaint(ps(), "ps:0"), "");
  EXPECT_THAT(complaint(path("nowhere")), HasSubstr(path("nowhere") + "/ca.pem"));
  EXPECT_THAT(complaint(worker(), "ps:0"), HasSubstr("node.pem is for worker:0, worker:1, not for ps:0"));
  EXPECT_THAT(complaint(keys("old", ours_, {"old", {"lockstep"}, {}})),
              AllOf(HasSubstr("older version"), HasSubstr("lockstep keys new DIR --cluster FILE")));
  EXPECT_THAT(complaint(keys("late", ours_, {"late", {}, {"worker:1"}, -10, -2})), HasSubstr("node.pem expired on 20"));
  EXPECT_THAT(complaint(keys("early", ours_, {"early", {}, {"worker:1"}, 2, 10})),
              HasSubstr("node.pem is valid from 20"));
  const std::string broken = path("broken");
  const auto fresh = [&] {
    std::filesystem::remove_all(broken);
    std::filesystem::copy(ps(), broken);
  };
  fresh();
  put(broken + "/node.pem", "nonsense");
  EXPECT_THAT(complaint(broken), HasSubstr("node.pem is not a certificate"));
  fresh();
  put(broken + "/node.key", "nonsense");
  EXPECT_THAT(complaint(broken), HasSubstr("node.key is not a private key"));
  fresh();
  std::filesystem::copy(worker() + "/node.key", broken + "/node.key",
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(complaint(broken), HasSubstr("node.key is not the key of"));
  EXPECT_THROW(Server(server_with(broken), echo), UsageError);
  EXPECT_THROW((void)connect("127.0.0.1:1", {.security = {broken}}), UsageError);
  fresh();
  put(broken + "/ca.pem", theirs_.certificate);
  EXPECT_THAT(complaint(broken), HasSubstr("was not made by"));
}

TEST_F(Tls, ACertificateThatExpiresWithinTwoWeeksIsAWarning) {
  EXPECT_EQ(expiry_warning({""}), "");
  EXPECT_EQ(expiry_warning({keys("fine", ours_, {"n1", {}, {"ps:0"}, -1, 16})}), "");
  EXPECT_THAT(expiry_warning({keys("soon", ours_, {"n1", {}, {"ps:0"}, -1, 13})}),
              HasSubstr("soon/node.pem expires on"));
}

}  // namespace
}  // namespace lockstep::transport
