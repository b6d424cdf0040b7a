// The register in etcd, for jobs without a launcher. It asks one of etcd's servers, and the next one if that does not
// answer. A swap is one transaction, so it is the same to ask it again anywhere.
//
// The key has no lease: with one, etcd would forget the latest group of a training that goes on while etcd is away, and
// others could train beside it.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "authority/asking_thread.h"
#include "authority/etcd_messages.h"
#include "authority/time_limit.h"

namespace lockstep::authority {

struct EtcdOptions {
  EtcdAddress address;
  std::string job;            ///< names the training in the key; no other one in this etcd has the same
  std::string authority;      ///< file with the certificates to trust (PEM); empty: no TLS
  std::string certificate;    ///< file of this client's certificate (PEM); may be empty
  std::string key;            ///< file of its private key (PEM)
  std::string user;           ///< empty: do not log in
  std::string password = {};  ///< the password of `user`
  std::chrono::milliseconds within = kAnswerWithin * 9 / 10;  ///< longest time to an answer
};

class EtcdRegister final : public Register {
 public:
  explicit EtcdRegister(EtcdOptions options);
  ~EtcdRegister() override;
  /// Throws UsageError if the files of the options cannot be used.
  static void check_files(const EtcdOptions& options);

  void read(Done done) override { thread_.ask({}, std::move(done)); }
  void swap(const Group& expected, const Group& next, Done done) override {
    thread_.ask(Swap{expected, next}, std::move(done));
  }
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// A connection to one of etcd's servers, which lasts until it fails.
  class Connection;

  Answer answer(const Question& question);
  /// Asks one server. A failure of kind `usage` is final.
  base::Result<Answer> ask(const Question& question, size_t endpoint, Clock::time_point until);
  base::Result<std::string> post(const EtcdRequest& request, size_t endpoint, Clock::time_point until);
  base::Status log_in(size_t endpoint, Clock::time_point until);

  const EtcdOptions options_;
  const std::string name_;
  const std::string key_;
  size_t endpoint_ = 0;  ///< the one to ask first
  std::string token_;    ///< proof of the login, from etcd
  TimeLimit limit_;      ///< bounds everything that the connection does
  Resolver resolver_;
  std::unique_ptr<Connection> connection_;
  std::atomic<bool> ending_ = false;
  AskingThread thread_;
};

}  // namespace lockstep::authority
