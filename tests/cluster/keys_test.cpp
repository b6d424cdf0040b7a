#include "cluster/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

using ::lockstep::testing::get_file;
using ::lockstep::testing::message_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

X509* load(const std::string& path) {
  const std::string pem = get_file(path);
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

/// Checks the chain and the purpose with OpenSSL's own verifier.
bool verifies(const std::string& authority, const std::string& node, int purpose) {
  X509* trusted = load(authority);
  X509* certificate = load(node);
  X509_STORE* store = X509_STORE_new();
  X509_STORE_add_cert(store, trusted);
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, certificate, nullptr);
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set_purpose(parameters, purpose);
  const bool good = X509_verify_cert(context) == 1;
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  X509_free(certificate);
  X509_free(trusted);
  return good;
}

unsigned mode_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777U : 0;
}

class Keys : public ::testing::Test {
 protected:
  /// One machine with a ps and a worker, one with a worker.
  static ClusterFile cluster() {
    return parse_cluster_file("nodes: [{host: n1, roles: [ps, worker]}, {host: 10.0.0.7, roles: [worker]}]\n", "test");
  }

  testing::TempDir folder_;
  std::string dir_ = folder_ / "keys";
};

TEST_F(Keys, OfAClusterAreAFolderForEachMachineThatNamesItsRoles) {
  const std::vector<MadeKeys> made = make_cluster_keys(dir_, cluster());
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].folder, dir_ + "/n1");
  EXPECT_THAT(made[0].roles, ElementsAre("ps:0", "worker:0"));
  EXPECT_EQ(made[1].host, "10.0.0.7");
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/node.key")) << "nobody holds a key for all roles";
  for (const MadeKeys& one : made) {
    const transport::CertificateFacts facts = transport::read_certificate(get_file(one.folder + "/node.pem"));
    EXPECT_EQ(facts.roles, one.roles);
    EXPECT_THAT(facts.names, ElementsAre(one.host));
    EXPECT_EQ(get_file(one.folder + "/ca.pem"), get_file(dir_ + "/ca.pem"));
    for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT}) {
      EXPECT_TRUE(verifies(dir_ + "/ca.pem", one.folder + "/node.pem", purpose)) << one.folder;
    }
  }
}

TEST_F(Keys, AnotherAuthoritysNodeIsRefused) {
  make_shared_keys(dir_);
  make_shared_keys(folder_ / "other");
  EXPECT_FALSE(verifies(dir_ + "/ca.pem", folder_ / "other/node.pem", X509_PURPOSE_SSL_CLIENT));
  EXPECT_FALSE(transport::is_signed_by(get_file(folder_ / "other/node.pem"), get_file(dir_ + "/ca.pem")));
  EXPECT_TRUE(transport::is_signed_by(get_file(dir_ + "/node.pem"), get_file(dir_ + "/ca.pem")));
}

TEST_F(Keys, ANodeCannotSignOthers) {
  make_shared_keys(dir_);
  const KeyPair forged =
      make_node({get_file(dir_ + "/node.pem"), get_file(dir_ + "/node.key")}, {"forged", {}, {"ps:0"}});
  testing::put_file(folder_ / "forged.pem",
                    {reinterpret_cast<const uint8_t*>(forged.certificate.data()), forged.certificate.size()});
  EXPECT_FALSE(verifies(dir_ + "/ca.pem", folder_ / "forged.pem", X509_PURPOSE_SSL_CLIENT));
}

TEST_F(Keys, PrivateKeysAreReadableByTheirOwnerOnly) {
  make_cluster_keys(dir_, cluster());
  EXPECT_EQ(mode_of(dir_ + "/ca.key"), 0600U);
  EXPECT_EQ(mode_of(dir_ + "/n1/node.key"), 0600U);
  EXPECT_EQ(mode_of(dir_ + "/ca.pem"), 0644U);
  EXPECT_EQ(mode_of(dir_ + "/n1"), 0700U);
}

TEST_F(Keys, AMachinesFolderHasWhatItNeedsAndNoMore) {
  make_cluster_keys(dir_, cluster());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir_ + "/n1")) names.push_back(entry.path().filename());
  EXPECT_THAT(names, UnorderedElementsAre("ca.pem", "node.pem", "node.key"));
}

TEST_F(Keys, AreNeverWrittenOver) {
  make_cluster_keys(dir_, cluster());
  const std::string authority = get_file(dir_ + "/ca.key");
  const std::string node = get_file(dir_ + "/n1/node.key");
  EXPECT_THAT(message_of<UsageError>([&] { make_shared_keys(dir_); }), HasSubstr("never overwritten"));
  EXPECT_THAT(message_of<UsageError>([&] { make_cluster_keys(dir_, cluster()); }), HasSubstr("never overwritten"));
  EXPECT_THAT(message_of<UsageError>([&] { make_node_keys(dir_, "n1", {}); }), HasSubstr("n1 already holds keys"));
  EXPECT_EQ(get_file(dir_ + "/ca.key"), authority);
  EXPECT_EQ(get_file(dir_ + "/n1/node.key"), node);
}

TEST_F(Keys, AMachineCanBeAddedLater) {
  make_cluster_keys(dir_, cluster());
  make_node_keys(dir_ + "/", "n3", {{Role::worker, 2}, {Role::evaluator, 0}});
  EXPECT_TRUE(verifies(dir_ + "/ca.pem", dir_ + "/n3/node.pem", X509_PURPOSE_SSL_SERVER));
  EXPECT_THAT(transport::read_certificate(get_file(dir_ + "/n3/node.pem")).roles,
              ElementsAre("worker:2", "evaluator:0"));
}

TEST_F(Keys, HalfAPairIsNobodys) {
  make_node_keys(dir_, "n1", {{Role::worker, 0}});
  std::filesystem::remove(dir_ + "/n1/node.pem");
  EXPECT_THAT(message_of<UsageError>([&] { make_node_keys(dir_, "n1", {}); }),
              HasSubstr("has node.key without node.pem"));
  EXPECT_THAT(message_of<UsageError>([&] { make_node_keys(dir_ + "/n1", "x", {}); }),
              HasSubstr("has ca.pem without ca.key"));
}

TEST_F(Keys, WrongNamesAreRefusedBeforeAnythingIsMade) {
  for (const char* name : {"..", ".", "a/b", "../x", "a b", "a,DNS:evil", "node.key", "ca.pem", "-x", "fe80::1%eth0"}) {
    EXPECT_THAT(message_of<UsageError>([&] { make_node_keys(dir_, name, {}); }), HasSubstr("is not a name")) << name;
  }
  EXPECT_THAT(message_of<UsageError>([&] { make_node_keys(dir_, std::string(65, 'x'), {}); }), HasSubstr("at most 64"));
  EXPECT_FALSE(std::filesystem::exists(dir_));
}

TEST_F(Keys, AFolderThatCannotBeMadeIsOneLine) {
  testing::put_file(folder_ / "file", {});
  EXPECT_THAT(message_of<IoError>([&] { make_shared_keys(folder_ / "file/keys"); }), HasSubstr("file"));
}

TEST_F(Keys, ShowTellsWhatIsThere) {
  make_shared_keys(dir_);
  make_node_keys(dir_, "n1", {{Role::worker, 1}});
  const std::vector<KeyFacts> all = read_keys(dir_);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].path, dir_ + "/ca.pem");
  EXPECT_TRUE(all[0].certificate.authority);
  EXPECT_THAT(all[0].certificate.subject, HasSubstr("CN=lockstep authority "));
  EXPECT_EQ(all[1].certificate.subject, "CN=shared");
  EXPECT_THAT(all[1].certificate.roles, ElementsAre(transport::kAnyRole));
  EXPECT_EQ(all[2].certificate.str(), "CN=n1 for worker:1");
  EXPECT_EQ(all[0].certificate.fingerprint.size(), 95U);
  EXPECT_NE(all[0].certificate.fingerprint, all[1].certificate.fingerprint);
  EXPECT_GE(std::stoi(all[1].certificate.not_after) - std::stoi(all[1].certificate.not_before), 10);
  for (const KeyFacts& facts : all) EXPECT_THAT(facts.problems, IsEmpty()) << facts.path;
}

TEST_F(Keys, ShowTellsWhatIsWrong) {
  make_shared_keys(dir_);
  make_shared_keys(folder_ / "other");
  const auto replace = [&](const char* file) {
    std::filesystem::copy_file(folder_ / "other" + ("/" + std::string(file)), dir_ + "/" + file,
                               std::filesystem::copy_options::overwrite_existing);
  };
  replace("node.key");
  std::filesystem::permissions(dir_ + "/node.key", std::filesystem::perms(0644));
  EXPECT_THAT(read_keys(dir_)[1].problems, ElementsAre("node.key is not its key", HasSubstr("mode 0644")));
  replace("node.pem");
  EXPECT_THAT(read_keys(dir_)[1].problems, Contains("is not signed by ca.pem"));
  std::filesystem::remove(dir_ + "/node.key");
  EXPECT_THAT(read_keys(dir_)[1].problems, Contains("has no node.key beside it"));
}

TEST_F(Keys, WhatIsNoCertificateIsOneLine) {
  make_shared_keys(dir_);
  testing::put_file(dir_ + "/node.pem", std::vector<uint8_t>{'x'});
  EXPECT_EQ(message_of<DataError>([&] { read_keys(dir_); }), dir_ + "/node.pem: is not a certificate in PEM form");
  EXPECT_THAT(message_of<IoError>([&] { read_keys(folder_ / "none"); }), HasSubstr("none/ca.pem"));
}

}  // namespace
}  // namespace lockstep::cluster
