// The server over real sockets: misbehaving clients are refused and hold up nobody else.
#include "http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <list>
#include <optional>
#include <thread>

#include "base/temp_dir.h"
#include "http/client.h"
#include "http/listen.h"
#include "lockstep/error.h"

namespace lockstep::http {
namespace {

using lockstep::testing::ask;
using lockstep::testing::body_of;
using lockstep::testing::Client;
using lockstep::testing::get;
using lockstep::testing::message_of;
using lockstep::testing::status_of;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kEvents = "GET /events HTTP/1.1\r\n\r\n";
constexpr size_t kLarge = size_t{4} << 20;  ///< more than one send takes
constexpr size_t kHuge = size_t{16} << 20;  ///< more than socket buffers hold

/// A server of a few pages; "/slow" waits for `release`.
class Pages {
 public:
  explicit Pages(size_t workers, Limits limits = {}) {
    base::FileHandle listener = listen_at({"127.0.0.1", 0}, "test");
    port_ = port_of(listener);
    server_.emplace(std::move(listener), ServerOptions{.name = "test", .workers = workers, .limits = limits},
                    [this](const Request& request) { return answer(request); });
  }
  ~Pages() {
    release();
    end();
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int counted() const { return counted_; }
  Server& server() { return *server_; }
  void wait_until_slow() { slow_.get_future().wait(); }
  void release() {
    if (!std::exchange(released_, true)) may_go_.set_value();
  }
  void end() { server_.reset(); }

 private:
  Response answer(const Request& request) {
    const std::string page = request.path.empty() ? "" : request.path[0];
    if (page == "throws") throw Error("not now");
    if (page == "large") return {.body = std::string(kLarge, 'x')};
    if (page == "huge") return {.body = std::string(kHuge, 'x')};
    if (page == "events") return {.type = "text/event-stream", .body = "event: hello\n\n", .events = true};
    if (page == "count") ++counted_;
    if (page == "slow") {
      slow_.set_value();
      go_.wait();
    }
    return plain_response(200, "page " + page);
  }

  int port_ = 0;
  std::atomic<int> counted_ = 0;
  std::promise<void> slow_;
  std::promise<void> may_go_;
  std::shared_future<void> go_ = may_go_.get_future().share();
  bool released_ = false;
  std::optional<Server> server_;
};

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 50000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

/// Each test runs with and without workers.
class ServerTest : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Workers, ServerTest, ::testing::Values(0, 3));

TEST_P(ServerTest, OnlyGetAndHeadAreServed) {
  const Pages pages(GetParam());
  const std::string page = get(pages.port(), "/a?x=1");
  EXPECT_THAT(page, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 7\r\n")));
  EXPECT_EQ(body_of(page), "page a\n");
  const std::string head = ask(pages.port(), "HEAD /a HTTP/1.0\r\n\r\n");
  EXPECT_THAT(head, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 7\r\n"), EndsWith("\r\n\r\n")));
  EXPECT_EQ(status_of(ask(pages.port(), "HEAD /events HTTP/1.1\r\n\r\n")), 200);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const std::string refused = ask(pages.port(), fmt::format("{} /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n", method));
    EXPECT_THAT(refused, AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: GET, HEAD\r\n"),
                               EndsWith("only GET and HEAD are served\n")));
  }
}

TEST_P(ServerTest, WhatIsNoRequestIsAnsweredAndForgotten) {
  const Pages pages(GetParam());
  EXPECT_THAT(ask(pages.port(), "hello\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 400 "), EndsWith("not an HTTP request\n")));
  EXPECT_EQ(status_of(get(pages.port(), "/../x")), 404);
  { const Client gone(pages.port()); }
  EXPECT_EQ(status_of(get(pages.port(), "/a")), 200);
}

TEST_P(ServerTest, ARequestWithoutEndIsCutOffAndItsSenderIsToldWhy) {
  const Pages pages(GetParam(), {.request_bytes = 1000});
  EXPECT_EQ(status_of(get(pages.port(), "/" + std::string(900, 'a'))), 200);
  Client client(pages.port());
  client.send(std::string(2000, 'x'));
  EXPECT_THAT(client.read("large\n"), AllOf(StartsWith("HTTP/1.1 431 "), EndsWith("the request is too large\n")));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(client.send(std::string(1000, 'x'))) << "one that has not done may finish";
  EXPECT_EQ(status_of(get(pages.port(), "/a")), 200);
}

TEST_P(ServerTest, WhatAHandlerThrowsIsAStatusOfItsOwn) {
  const Pages pages(GetParam());
  EXPECT_THAT(get(pages.port(), "/throws"), AllOf(StartsWith("HTTP/1.1 500 "), EndsWith("not now\n")));
  EXPECT_EQ(status_of(get(pages.port(), "/a")), 200);
}

TEST_P(ServerTest, ALargeAnswerArrivesWhole) {
  const Pages pages(GetParam());
  EXPECT_EQ(body_of(get(pages.port(), "/large")).size(), kLarge);
}

TEST_P(ServerTest, SlowClientsHoldUpNobody) {
  const Pages pages(GetParam(), {.connections = 8});
  std::list<Client> slow;
  for (int i = 0; i < 20; ++i) {  // more than the server allows
    ASSERT_TRUE(slow.emplace_back(pages.port()).connected());
    slow.back().send("GET / HT");
  }
  EXPECT_EQ(status_of(get(pages.port(), "/a")), 200);
  std::list<Client> deaf;  // clients that ask and do not read the answer
  for (int i = 0; i < 6; ++i) deaf.emplace_back(pages.port()).send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_EQ(status_of(get(pages.port(), "/a")), 200);
}

TEST_P(ServerTest, OfTooManyTheLongestThereGoesUnlessItIsAStream) {
  Pages pages(GetParam(), {.connections = 3});
  Client stream(pages.port());
  stream.send(kEvents);
  stream.read("hello");
  Client oldest(pages.port());
  std::list<Client> later;
  for (int i = 0; i < 2; ++i) later.emplace_back(pages.port());
  EXPECT_EQ(oldest.read(), "");
  later.back().send("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_EQ(status_of(later.back().read()), 200);
  pages.server().publish("data: 1\n\n");
  EXPECT_THAT(stream.read("1\n\n"), EndsWith("data: 1\n\n"));
}

TEST_P(ServerTest, WhoTakesTooLongToAskIsCutOff) {
  const Pages pages(GetParam(), {.request = milliseconds(20)});
  Client silent(pages.port());
  Client slow(pages.port());
  slow.send("GET / HT");
  EXPECT_EQ(silent.read(), "");
  EXPECT_EQ(slow.read(), "");
}

TEST_P(ServerTest, WhoTakesTooLongToReadIsCutOff) {
  const Pages pages(GetParam(), {.answer = milliseconds(20)});
  Client client(pages.port());
  client.send("GET /huge HTTP/1.1\r\n\r\n");
  size_t read = 0;
  while (read < kHuge && !client.ended()) {
    read = client.read_some().size();
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_TRUE(client.ended());
  EXPECT_LT(read, kHuge);
}

TEST_P(ServerTest, StreamsGetWhatIsPublishedAndTooManyAreRefused) {
  Pages pages(GetParam(), {.streams = 3});
  std::list<Client> streams;
  for (int i = 0; i < 3; ++i) {
    streams.emplace_back(pages.port()).send(kEvents);
    EXPECT_THAT(streams.back().read("hello\n\n"), AllOf(HasSubstr("text/event-stream"), Not(HasSubstr("Length"))));
  }
  EXPECT_EQ(pages.server().streams(), 3U);
  EXPECT_THAT(ask(pages.port(), kEvents), AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("too many pages are open\n")));
  for (const char* event : {"data: 1\n\n", "data: 2\n\n"}) pages.server().publish(event);
  for (Client& stream : streams) EXPECT_THAT(stream.read("2\n\n"), EndsWith("data: 1\n\ndata: 2\n\n"));
  streams.pop_back();
  ASSERT_TRUE(eventually([&] { return pages.server().streams() == 2; }));
  Client next(pages.port());
  next.send(kEvents);
  EXPECT_EQ(status_of(next.read("hello")), 200);
}

TEST_P(ServerTest, AStreamThatDoesNotTakeItsEventsEnds) {
  Pages pages(GetParam());
  Client deaf(pages.port());
  deaf.send(kEvents);
  deaf.read("hello");
  const std::string event = "data: " + std::string(100000, 'x') + "\n\n";
  EXPECT_TRUE(eventually([&] {
    pages.server().publish(event);
    return pages.server().streams() == 0;
  }));
}

TEST_P(ServerTest, ItsEndWaitsForNoClient) {
  Pages pages(GetParam());
  Client stream(pages.port());
  stream.send(kEvents);
  stream.read("hello");
  Client slow(pages.port());
  slow.send("GET /");
  Client deaf(pages.port());
  deaf.send("GET /large HTTP/1.1\r\n\r\n");
  deaf.read("\r\n\r\n");
  pages.end();
  for (Client* client : {&stream, &slow, &deaf}) EXPECT_THAT(client->read(), Not(HasSubstr("[no end]")));
  EXPECT_FALSE(Client(pages.port()).connected());
}

TEST(Workers, AnAnswerThatIsLongInTheMakingHoldsUpNoOther) {
  Pages pages(2);
  Client slow(pages.port());
  slow.send("GET /slow HTTP/1.1\r\n\r\n");
  pages.wait_until_slow();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(body_of(get(pages.port(), "/a")), "page a\n");
  pages.release();
  EXPECT_EQ(body_of(slow.read()), "page slow\n");
}

TEST(Workers, AnAnswerThatIsTooLongInTheMakingIsNotWaitedFor) {
  Pages pages(1, {.answer = milliseconds(20)});
  Client slow(pages.port());
  slow.send("GET /slow HTTP/1.1\r\n\r\n");
  EXPECT_EQ(slow.read(), "");
}

TEST(Workers, NothingIsMadeForThoseWhoHadToGo) {
  Pages pages(1, {.connections = 3});
  Client slow(pages.port());
  slow.send("GET /slow HTTP/1.1\r\n\r\n");
  pages.wait_until_slow();
  std::list<Client> clients;
  for (int i = 0; i < 10; ++i) clients.emplace_back(pages.port()).send("GET /count HTTP/1.1\r\n\r\n");
  EXPECT_EQ(slow.read(), "");
  for (int i = 0; i < 7; ++i, clients.pop_front()) EXPECT_EQ(clients.front().read(), "");
  pages.release();
  for (Client& client : clients) EXPECT_EQ(status_of(client.read()), 200);
  EXPECT_EQ(pages.counted(), 3);
}

TEST(Listen, APortThatIsTakenIsOneLine) {
  const base::FileHandle first = listen_at({"127.0.0.1", 0}, "test");
  const int port = port_of(first);
  EXPECT_EQ(message_of<IoError>([&] {
              listen_at({"127.0.0.1", port}, "test", "; 0 takes a free one");
            }),
            fmt::format("test: cannot listen at 127.0.0.1:{}: Address already in use; 0 takes a free one", port));
}

TEST(Listen, AnAddressOfAnotherMachineIsOneLine) {
  EXPECT_EQ(message_of<IoError>([&] {
              listen_at({"192.0.2.1", 6007}, "test", "; 0 takes a free one");
            }),
            "test: cannot listen at 192.0.2.1:6007: Cannot assign requested address");
}

}  // namespace
}  // namespace lockstep::http
