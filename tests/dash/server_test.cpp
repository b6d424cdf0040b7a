// The dashboard over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <list>

#include "base/temp_dir.h"
#include "dash/served.h"
#include "http/client.h"
#include "lockstep/error.h"
#include "records/run_folders.h"

namespace lockstep::dash {
namespace {

namespace fs = std::filesystem;
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

TEST_F(ServerTest, OnlyThisMachinesNamesAreAnswered) {
  const Served served(options());
  EXPECT_EQ(status_of(get(served.port(), "/")), 200);
  EXPECT_EQ(status_of(get(served.port(), "/", "Host: evil.example\r\n")), 403);
  EXPECT_EQ(status_of(get(served.port(), "/", "")), 403);
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
    EXPECT_EQ(error.what(), fmt::format("dash: cannot listen at 127.0.0.1:{}: Address already in use; "
                                        "`lockstep dash --port 0` takes a free one",
                                        served.port()));
  }
}

TEST_F(ServerTest, OpenPagesAreToldWhatChanges) {
  const Served served(options());
  std::list<Client> pages;
  for (int i = 0; i < 3; ++i) {
    Client& page = pages.emplace_back(served.port());
    page.send(kEvents);
    ASSERT_THAT(page.read("event: hello"), HasSubstr("text/event-stream"));
  }
  put_text(runs_ + "/a/evals.csv", "step,epoch,seconds,loss,accuracy\n100,1,1,0.5,0.5\n");
  for (Client& page : pages) EXPECT_THAT(page.read("\"a\""), HasSubstr("event: change"));
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
  served.end();
  EXPECT_THAT(page.read(), Not(HasSubstr("[no end]")));
  EXPECT_FALSE(Client(served.port()).connected());
}

}  // namespace
}  // namespace lockstep::dash
