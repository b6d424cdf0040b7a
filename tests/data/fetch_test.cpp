#include "data/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>

#include "base/file.h"
#include "base/temp_dir.h"
#include "data/formats.h"
#include "data/mirror.h"
#include "data/unpack.h"
#include "lockstep/error.h"

extern char** environ;

namespace lockstep::data {
namespace {

using lockstep::testing::Bytes;
using lockstep::testing::get_file;
using lockstep::testing::gzip;
using lockstep::testing::message_of;
using lockstep::testing::Mirror;
using lockstep::testing::put_file;
using lockstep::testing::ramp;
using lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;

constexpr uint64_t kSize = 300'000;

std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

class Fetch : public ::testing::Test {
 protected:
  Fetch() {
    const TempDir scratch;
    put_file(scratch / "a", ramp(kSize));
    const std::string md5 = md5_of_content(scratch / "a", kSize).value();
    content_ = text_of(gzip(ramp(kSize)));
    files_ = {{"a.gz", md5, kSize}, {"b.gz", md5, kSize}};
    limits_.connect = 100s;
    limits_.read = 100s;
  }

  void serve_all(Mirror& mirror) const {
    mirror.serve("/data/a.gz", content_);
    mirror.serve("/data/b.gz", content_);
  }

  void fetch(const std::vector<std::string>& mirrors) { fetch_files(files_, folder_, mirrors, limits_, "", progress_); }

  std::string error(const std::vector<std::string>& mirrors) {
    return message_of<IoError>([&] { fetch(mirrors); });
  }

  [[nodiscard]] std::vector<std::string> names_in_folder() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }

  TempDir dir_;
  std::string folder_ = dir_ / "cache/mnist";
  std::string content_;
  std::vector<RemoteFile> files_;
  FetchLimits limits_;
  FetchCallback progress_;
};

TEST_F(Fetch, GetsEachFileOnce) {
  Mirror mirror;
  serve_all(mirror);
  fetch({mirror.url("/data")});
  EXPECT_EQ(get_file(folder_ + "/a.gz"), content_);
  EXPECT_EQ(get_file(folder_ + "/b.gz"), content_);
  fetch({mirror.url("/data/")});
  EXPECT_EQ(mirror.requests(), 2);
}

TEST_F(Fetch, ReportsProgress) {
  Mirror mirror;
  serve_all(mirror);
  uint64_t most = 0;
  std::vector<std::string> done;
  progress_ = [&](const FetchProgress& report) {
    if (report.phase == FetchProgress::Phase::kDone) {
      done.push_back(report.file);
    } else {
      EXPECT_EQ(report.total, content_.size());
      most = std::max(most, report.bytes);
    }
  };
  fetch({mirror.url("/data/")});
  EXPECT_EQ(most, content_.size());
  EXPECT_THAT(done, ElementsAre("a.gz", "b.gz"));
}

TEST_F(Fetch, GoesOnWithTheNextMirrorAndRemembersIt) {
  Mirror empty;
  Mirror good;
  serve_all(good);
  fetch({empty.url("/data/"), good.url("/data/")});
  EXPECT_EQ(empty.requests(), 1);
  EXPECT_EQ(good.requests(), 2);
}

TEST_F(Fetch, SaysWhatEachMirrorAnswered) {
  Mirror empty;
  EXPECT_THAT(error({empty.url("/data/"), "http://127.0.0.1:1/"}),
              AllOf(HasSubstr(empty.url("/data/a.gz") + ": HTTP status 404"), HasSubstr("http://127.0.0.1:1/a.gz: ")));
  EXPECT_EQ(error({}), "cannot fetch a.gz: no mirror is given");
}

TEST_F(Fetch, FollowsRedirections) {
  Mirror good;
  serve_all(good);
  Mirror moved;
  moved.server().Get("/old/.*", [to = good.url("/data")](const httplib::Request& request, httplib::Response& response) {
    response.set_redirect(to + request.path.substr(4));
  });
  fetch({moved.url("/old/")});
  EXPECT_EQ(get_file(folder_ + "/b.gz"), content_);
}

TEST_F(Fetch, RefusesOtherContent) {
  Mirror other;
  other.serve("/data/a.gz", text_of(gzip(ramp(1000))));
  EXPECT_THAT(error({other.url("/data/")}), HasSubstr("damaged: its content has md5"));
  Mirror corrupt;
  std::string flipped = content_;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
  corrupt.serve("/data/a.gz", flipped);
  EXPECT_THAT(error({corrupt.url("/data/")}), HasSubstr("a.gz: damaged"));
  Mirror page;
  page.serve("/data/a.gz", "<html>please log in</html>");
  EXPECT_THAT(error({page.url("/data/")}), HasSubstr("a.gz: damaged: its content has md5"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a.gz"));
}

TEST_F(Fetch, RefusesCutOffContentWhateverTheServerPromised) {
  Mirror honest;
  honest.serve("/data/a.gz", content_.substr(0, content_.size() / 2));
  EXPECT_THAT(error({honest.url("/data/")}), HasSubstr("damaged: its gzip data is corrupt or cut off"));
  Mirror dropping;
  dropping.server().Get("/data/a.gz", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content_provider(content_.size(), "application/octet-stream",
                                  [&](size_t offset, size_t, httplib::DataSink& sink) {
                                    if (offset > 0) return false;
                                    sink.write(content_.data(), 1000);
                                    return true;
                                  });
  });
  EXPECT_THAT(error({dropping.url("/data/")}), HasSubstr("the connection broke or timed out"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a.gz"));
}

TEST_F(Fetch, LeavesNothingOfAFailedAttempt) {
  Mirror page;
  page.serve("/data/a.gz", "nonsense");
  error({page.url("/data/")});
  EXPECT_THAT(names_in_folder(), ElementsAre(".lock"));
}

TEST_F(Fetch, RemovesWhatAKilledProcessLeft) {
  Mirror mirror;
  serve_all(mirror);
  std::filesystem::create_directories(folder_);
  put_file(folder_ + "/a.gz.tmp-99999-0", ramp(10));
  fetch({mirror.url("/data/")});
  EXPECT_THAT(names_in_folder(), UnorderedElementsAre(".lock", "a.gz", "b.gz"));
}

/// A listening socket on loopback; the test decides whether it answers connections.
struct Listener {
  Listener() : fd(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd, 8), 0);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { ::close(fd); }

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port) + "/"; }

  int fd;
  int port = 0;
};

TEST_F(Fetch, ASilentServerRunsIntoTheReadLimit) {
  const Listener listener;
  limits_.read = 200ms;
  EXPECT_THAT(error({listener.url()}), HasSubstr("the connection broke or timed out"));
}

TEST_F(Fetch, ASlowServerRunsIntoTheLimitOfAFile) {
  Mirror slow;
  slow.server().Get("/data/a.gz", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content_provider(content_.size(), "application/octet-stream",
                                  [&](size_t offset, size_t, httplib::DataSink& sink) {
                                    std::this_thread::sleep_for(20ms);
                                    return sink.write(content_.data() + offset, 1);
                                  });
  });
  limits_.whole_file = 300ms;
  EXPECT_THAT(error({slow.url("/data/")}), HasSubstr("not finished after 0.3 s"));
}

TEST_F(Fetch, ATooLargeFileIsRefusedAtOnceAndTheNextMirrorTried) {
  Mirror honest;
  honest.serve("/data/a.gz", std::string(2'000'000, 'x'));
  EXPECT_THAT(error({honest.url("/data/")}), HasSubstr("too large: it has 2000000 bytes or more, at most 307096"));
  std::atomic<uint64_t> sent{0};
  Mirror endless;
  endless.server().Get("/data/a.gz", [&](const httplib::Request&, httplib::Response& response) {
    response.set_chunked_content_provider("application/octet-stream", [&](size_t, httplib::DataSink& sink) {
      static const std::string piece(10'000, 'x');
      sent += piece.size();
      return sink.write(piece.data(), piece.size());
    });
  });
  Mirror good;
  serve_all(good);
  uint64_t most = 0;
  progress_ = [&](const FetchProgress& report) { most = std::max(most, report.bytes); };
  fetch({honest.url("/data/"), endless.url("/data/"), good.url("/data/")});
  EXPECT_GT(sent, 300'000);
  EXPECT_LE(most, 307'096);
  EXPECT_EQ(get_file(folder_ + "/a.gz"), content_);
  EXPECT_THAT(names_in_folder(), UnorderedElementsAre(".lock", "a.gz", "b.gz"));
}

TEST_F(Fetch, AGzipBombIsNotUnpackedToItsEnd) {
  Mirror bomb;
  bomb.serve("/data/a.gz", text_of(gzip(Bytes(100'000'000))));
  EXPECT_THAT(error({bomb.url("/data/")}), HasSubstr("damaged: it unpacks to more than the 300000 bytes"));
  EXPECT_THAT(names_in_folder(), ElementsAre(".lock"));
}

TEST_F(Fetch, HeadersWithoutEndRunIntoTheLimitOfAFile) {
  const Listener listener;
  std::thread server([&] {
    const int peer = ::accept(listener.fd, nullptr, nullptr);
    const std::string line = "HTTP/1.1 200 OK\r\n";
    for (std::string text = line; ::send(peer, text.data(), text.size(), MSG_NOSIGNAL) > 0; text = "X: y\r\n") {
      std::this_thread::sleep_for(10ms);
    }
    ::close(peer);
  });
  limits_.whole_file = 300ms;
  EXPECT_THAT(error({listener.url()}), HasSubstr("not finished after 0.3 s (0 bytes received)"));
  server.join();
}

TEST_F(Fetch, RefusesAddressesThatAreNone) {
  EXPECT_EQ(message_of<UsageError>([&] { fetch({"ftp://example.org/"}); }),
            "mirror 'ftp://example.org/': an address that starts with http:// or https:// is expected");
  EXPECT_THROW(fetch({"https://"}), UsageError);
}

TEST_F(Fetch, SaysWhenTheCacheCannotBeWritten) {
  put_file(dir_ / "cache", ramp(1));
  EXPECT_THAT(error({"http://127.0.0.1:1/"}),
              AllOf(HasSubstr("cannot create folder " + folder_), HasSubstr("Not a directory")));
}

TEST_F(Fetch, AFullDiskIsNotTheMirrorsFault) {
  Mirror first;
  serve_all(first);
  Mirror second;
  serve_all(second);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{200, before.rlim_max};
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message = error({first.url("/data/"), second.url("/data/")});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(HasSubstr("cannot write " + folder_), HasSubstr("File too large")));
  EXPECT_EQ(second.requests(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a.gz"));
}

TEST_F(Fetch, WaitsForAnotherProcessWithADeadline) {
  std::filesystem::create_directories(folder_);
  const auto lock = base::LockFile::try_lock(folder_ + "/.lock");
  bool told = false;
  progress_ = [&](const FetchProgress& report) { told = report.phase == FetchProgress::Phase::kWaiting; };
  limits_.other_process = 100ms;
  EXPECT_THAT(error({"http://127.0.0.1:1/"}), HasSubstr("another process has held it for 0.1 s"));
  EXPECT_TRUE(told);
}

pid_t start_helper(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = -1;
  EXPECT_EQ(::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ), 0);
  return child;
}

TEST_F(Fetch, ProcessesThatStartTogetherFetchOnce) {
  const char* helper = std::getenv("LOCKSTEP_FETCH_HELPER");
  if (helper == nullptr) GTEST_SKIP() << "LOCKSTEP_FETCH_HELPER is not set";
  Mirror mirror;
  for (const char* path : {"/data/a.gz", "/data/b.gz"}) {
    mirror.server().Get(path, [&](const httplib::Request&, httplib::Response& response) {
      std::this_thread::sleep_for(150ms);
      response.set_content(content_, "application/octet-stream");
    });
  }
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start_helper({helper, folder_, mirror.url("/data/"), std::to_string(kSize), files_[0].name,
                                     files_[0].md5, files_[1].name, files_[1].md5}));
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(mirror.requests(), 2);
  EXPECT_EQ(get_file(folder_ + "/a.gz"), content_);
  EXPECT_EQ(get_file(folder_ + "/b.gz"), content_);
}

TEST_F(Fetch, AKilledFetcherDoesNotBlockTheNext) {
  const char* helper = std::getenv("LOCKSTEP_FETCH_HELPER");
  if (helper == nullptr) GTEST_SKIP() << "LOCKSTEP_FETCH_HELPER is not set";
  std::atomic<bool> asked{false};
  std::atomic<bool> stuck{true};
  Mirror mirror;
  for (const char* path : {"/data/a.gz", "/data/b.gz"}) {
    mirror.server().Get(path, [&](const httplib::Request&, httplib::Response& response) {
      asked = true;
      while (stuck) std::this_thread::sleep_for(5ms);
      response.set_content(content_, "application/octet-stream");
    });
  }
  const pid_t child = start_helper({helper, folder_, mirror.url("/data/"), std::to_string(kSize), files_[0].name,
                                    files_[0].md5, files_[1].name, files_[1].md5});
  while (!asked) std::this_thread::sleep_for(5ms);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  stuck = false;
  fetch({mirror.url("/data/")});
  EXPECT_EQ(get_file(folder_ + "/b.gz"), content_);
}

/// A self-signed certificate for localhost.
class Certificate {
 public:
  explicit Certificate(const TempDir& dir)
      : key_(EVP_RSA_gen(2048), &EVP_PKEY_free), x509_(X509_new(), &X509_free), path_(dir / "cert.pem") {
    ASN1_INTEGER_set(X509_get_serialNumber(x509_.get()), 1);
    X509_set_version(x509_.get(), 2);
    X509_gmtime_adj(X509_getm_notBefore(x509_.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(x509_.get()), 3600);
    X509_set_pubkey(x509_.get(), key_.get());
    X509_NAME* name = X509_get_subject_name(x509_.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const uint8_t*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(x509_.get(), name);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost");
    X509_add_ext(x509_.get(), extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(x509_.get(), key_.get(), EVP_sha256());
    FILE* file = std::fopen(path_.c_str(), "w");
    PEM_write_X509(file, x509_.get());
    std::fclose(file);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::unique_ptr<httplib::Server> server() const {
    return std::make_unique<httplib::SSLServer>(x509_.get(), key_.get());
  }

 private:
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
  std::unique_ptr<X509, decltype(&X509_free)> x509_;
  std::string path_;
};

TEST_F(Fetch, VerifiesCertificates) {
  const Certificate certificate(dir_);
  Mirror mirror(certificate.server(), "https");
  serve_all(mirror);
  EXPECT_THAT(error({mirror.url("/data/")}), HasSubstr("the server's certificate is not trusted"));
  ::setenv("SSL_CERT_FILE", certificate.path().c_str(), 1);
  EXPECT_NO_THROW(fetch({mirror.url("/data/")}));
  ::unsetenv("SSL_CERT_FILE");
  EXPECT_EQ(get_file(folder_ + "/b.gz"), content_);
}

}  // namespace
}  // namespace lockstep::data
