// The dashboard over real sockets: who misbehaves gets nowhere and holds up nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <list>

#include "base/temp_dir.h"
#include "dash/http_server.h"
#include "dash/served.h"
#include "lockstep/error.h"
#include "records/run_folders.h"

namespace lockstep::dash {
namespace {

namespace fs = std::filesystem;
using lockstep::testing::ask;
using lockstep::testing::body_of;
using lockstep::testing::Client;
using lockstep::testing::get;
using lockstep::testing::put_text;
using lockstep::testing::Served;
using lockstep::testing::status_of;
using lockstep::testing::TempDir;
using lockstep::testing::write_cluster_run;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kEvents = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() { write_cluster_run(runs_ + "/a"); }
  [[nodiscard]] Options options() const { return {.runs_dir = runs_, .lab_dir = dir_.path() + "/lab"}; }

  TempDir dir_;
  std::string runs_ = dir_.path() + "/runs";
};

TEST_F(ServerTest, OnlyGetAndHeadAreServed) {
  const Served served(options());
  EXPECT_EQ(status_of(get(served.port(), "/api/run/a")), 200);
  const std::string head = ask(served.port(), "HEAD /api/run/a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(status_of(head), 200);
  EXPECT_EQ(body_of(head), "");
  EXPECT_EQ(status_of(ask(served.port(), "HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n")), 200);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const std::string text =
        fmt::format("{} /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", method);
    EXPECT_EQ(status_of(ask(served.port(), text)), 405) << method;
  }
}

TEST_F(ServerTest, PathsOutsideTheFoldersAreRefused) {
  put_text(dir_.path() + "/secret", "secret");
  put_text(runs_ + "/a/notes.txt", "secret");
  const Served served(options());
  for (const char* path :
       {"/../secret", "/api/run/../../secret", "/api/run/..%2f..%2fsecret", "/api/run/%2fetc%2fpasswd",
        "/static/../../secret", "/report/..", "//etc/passwd", "/runs/a/notes.txt", "/api/run/a/notes.txt"}) {
    const std::string response = get(served.port(), path);
    EXPECT_EQ(status_of(response), 404) << path;
    EXPECT_THAT(response, Not(HasSubstr("secret")));
  }
}

TEST_F(ServerTest, WhatIsNoRequestIsAnsweredAndForgotten) {
  const Served served(options());
  EXPECT_EQ(status_of(ask(served.port(), "hello\r\n\r\n")), 400);
  EXPECT_EQ(status_of(ask(served.port(), "GET / HTTP/1.1\r\nX: " + std::string(20000, 'x'))), 431);
  EXPECT_EQ(status_of(get(served.port(), "/", "Host: evil.example\r\n")), 403);
  EXPECT_EQ(status_of(get(served.port(), "/", "")), 403);
  { Client gone(served.port()); }
  EXPECT_EQ(status_of(get(served.port(), "/")), 200);
}

TEST_F(ServerTest, ElsewhereEveryRequestNeedsTheToken) {
  Options open = options();
  open.host = "0.0.0.0";
  EXPECT_THROW(Served{open}, UsageError);
  open.token = make_token();
  const Served served(open);
  EXPECT_THAT(served.url(), HasSubstr("?token=" + open.token));
  for (const char* path : {"/", "/api/runs", "/static/app.js", "/events", "/report/x"}) {
    EXPECT_EQ(status_of(get(served.port(), path)), 401) << path;
  }
  EXPECT_EQ(status_of(get(served.port(), "/?token=" + open.token)), 303);
  const std::string cookie = fmt::format("Cookie: lockstep-dash-{}={}\r\n", served.port(), open.token);
  EXPECT_EQ(status_of(get(served.port(), "/api/runs", cookie)), 200);
}

TEST_F(ServerTest, APortThatIsTakenIsOneLine) {
  const Served served(options());
  Options second = options();
  second.port = served.port();
  try {
    serve(second, {});
    FAIL() << "two serve one port";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("127.0.0.1:{}: Address already in use", served.port())));
  }
}

TEST_F(ServerTest, SlowClientsHoldUpNobody) {
  const Served served(options());
  std::list<Client> slow;
  for (int i = 0; i < 300; ++i) {  // more than the server keeps
    ASSERT_TRUE(slow.emplace_back(served.port()).connected());
    slow.back().send("GET / HT");
  }
  EXPECT_EQ(status_of(get(served.port(), "/api/runs")), 200);
  // One that asks and does not read the answer either.
  std::list<Client> deaf;
  for (int i = 0; i < 20; ++i)
    deaf.emplace_back(served.port()).send("GET /static/chart.js HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(status_of(get(served.port(), "/api/runs")), 200);
}

TEST_F(ServerTest, ManyPagesAreToldAndMoreThanThatAreRefused) {
  const Served served(options());
  std::list<Client> pages;
  for (size_t i = 0; i < HttpServer::kMostStreams; ++i) {
    Client& page = pages.emplace_back(served.port());
    page.send(kEvents);
    ASSERT_THAT(page.read("event: hello"), HasSubstr("text/event-stream"));
  }
  EXPECT_EQ(status_of(ask(served.port(), kEvents)), 503);
  put_text(runs_ + "/a/evals.csv", "step,epoch,seconds,loss,accuracy\n100,1,1,0.5,0.5\n");
  for (Client& page : pages) EXPECT_THAT(page.read("\"a\""), HasSubstr("event: change"));
  EXPECT_EQ(status_of(get(served.port(), "/api/runs")), 200);
  pages.pop_back();
  Client next(served.port());  // the place of one that went is free, once that is noticed
  for (int i = 0; i < 100; ++i) {
    Client page(served.port());
    page.send(kEvents);
    if (status_of(page.read("\n\n")) == 200) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  FAIL() << "the place is never free again";
}

TEST_F(ServerTest, ARunDeletedWhileItIsViewedIsNotThereAnyMore) {
  const Served served(options());
  Client page(served.port());
  page.send(kEvents);
  page.read("event: change");
  EXPECT_EQ(status_of(get(served.port(), "/api/run/a")), 200);
  fs::remove_all(runs_ + "/a");
  EXPECT_EQ(status_of(get(served.port(), "/api/run/a")), 404);
  EXPECT_EQ(status_of(get(served.port(), "/api/run/a/charts")), 404);
  EXPECT_EQ(status_of(get(served.port(), "/api/compare?runs=a")), 200);
  fs::remove_all(runs_);
  EXPECT_THAT(get(served.port(), "/api/runs"), HasSubstr("\"runs\":[]"));
}

TEST_F(ServerTest, StoppingEndsAllConnections) {
  Served served(options());
  Client page(served.port());
  page.send(kEvents);
  page.read("event: hello");
  Client slow(served.port());
  slow.send("GET /");
  const int port = served.port();
  served.end();
  EXPECT_THAT(page.read(), Not(HasSubstr("[no end]")));
  EXPECT_THAT(slow.read(), Not(HasSubstr("[no end]")));
  EXPECT_FALSE(Client(port).connected());
}

}  // namespace
}  // namespace lockstep::dash
