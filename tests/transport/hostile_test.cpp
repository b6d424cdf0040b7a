// Broken or hostile peers harm only themselves.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <random>

#include "base/file.h"
#include "transport/core.h"
#include "transport/frame.h"
#include "transport/strangers.h"
#include "transport/streams.h"

namespace lockstep::transport {
namespace {

using testing::any_port;
using testing::connected;
using testing::Crowd;
using testing::echo;
using testing::eventually;
using testing::files_here;
using ::testing::HasSubstr;
using testing::pattern;
using testing::send_some;
using testing::tcp_connection;
using testing::threads_here;

constexpr const char* kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// True if the server hangs up; ignores the bytes before that.
bool closed_by_server(const base::FileHandle& handle) {
  char buffer[4096];
  pollfd watched{.fd = handle.get(), .events = POLLIN, .revents = 0};
  while (poll(&watched, 1, 100'000) > 0) {
    if (recv(handle.get(), buffer, sizeof(buffer), 0) <= 0) return true;
  }
  return false;
}

std::string random_bytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

void expect_still_serving(Server& server) {
  const auto stream = connected(server);
  ASSERT_TRUE(stream->write({}, pattern(1000)));
  EXPECT_TRUE(stream->read());
}

TEST(Hostile, WhoSpeaksNoHttp2IsHungUpOn) {
  Server server(any_port(), echo);
  const std::string tls_hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), tls_hello + std::string(600, 'x'),
                                   std::string(100'000, '\0')}) {
    const base::FileHandle peer = tcp_connection(server.port());
    send_some(peer, bytes);
    EXPECT_TRUE(closed_by_server(peer));
  }
  expect_still_serving(server);
}

TEST(Hostile, RandomBytesHarmNobody) {
  Server server(any_port(), echo);
  const auto innocent = connected(server);
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    const base::FileHandle peer = tcp_connection(server.port());
    if (i % 2 == 1) send_some(peer, kPreface);
    if (i % 4 == 3) send_some(peer, std::string("\0\0\0\4\0\0\0\0\0", 9));  // settings
    send_some(peer, random_bytes(random, 1 + random() % 5000));
    ASSERT_TRUE(innocent->write({}, pattern(1000)));
    ASSERT_TRUE(innocent->read());
  }
  expect_still_serving(server);
}

TEST(Hostile, ConnectionsThatSayNothingDoNotKeepOthersOut) {
  ServerOptions options = any_port();
  options.most_streams = 2;
  Server server(options, echo);
  std::vector<base::FileHandle> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(tcp_connection(server.port()));
  expect_still_serving(server);
  for (const base::FileHandle& peer : silent) send_some(peer, kPreface);
  expect_still_serving(server);
}

TEST(Hostile, ConnectionsThatWentAwayLeaveNothingBehind) {
  Server server(any_port(), echo);
  expect_still_serving(server);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const size_t threads = threads_here();
  const size_t files = files_here();
  for (int i = 0; i < 100; ++i) {
    const base::FileHandle peer = tcp_connection(server.port());
    if (i % 2 == 0) send_some(peer, "garbage");
  }
  // Ended threads are joined when the next connection arrives.
  EXPECT_TRUE(eventually([&] {
    tcp_connection(server.port());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return threads_here() <= threads + 4 && files_here() <= files + 8;
  })) << threads_here()
      << " threads, " << files_here() << " files; before " << threads << ", " << files;
}

TEST(Hostile, StrangersAreFewCostNoThreadAndLetMembersIn) {
  ServerOptions options = any_port();
  options.hello_first = true;
  Server server(options, [](Stream& stream) {
    stream.admit();
    echo(stream);
  });
  expect_still_serving(server);
  const size_t threads = threads_here();
  for (const std::string& bytes : {std::string(), std::string(kPreface)}) {
    const Crowd crowd(server.port(), 200, bytes);
    EXPECT_TRUE(eventually([&] { return crowd.kept() <= 64; })) << crowd.kept();
    EXPECT_LE(threads_here(), threads + 4) << "gRPC may have made some of its own";
    expect_still_serving(server);
  }
}

/// Streams whose peers have not said hello are strangers, too.
TEST(Hostile, AStreamWithoutAHelloCostsNoThreadAndIsClosed) {
  ServerOptions options = any_port();
  options.hello_first = true;
  options.stranger_wait = std::chrono::seconds(3);
  std::atomic<int> handled = 0;
  Server server(options, [&](Stream& stream) {
    ++handled;
    stream.admit();
    echo(stream);
  });
  expect_still_serving(server);
  const size_t threads = threads_here();
  std::vector<std::unique_ptr<Stream>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connected(server));
  EXPECT_LE(threads_here(), threads + 4);
  EXPECT_EQ(handled, 1);
  expect_still_serving(server);
  const auto frame = silent.front()->read();
  ASSERT_FALSE(frame) << "its time to say something is over";
  EXPECT_THAT(frame.failure().message(), HasSubstr("the server closed the stream"));
}

TEST(Hostile, OneWhoIsNotAdmittedStaysAStranger) {
  ServerOptions options = any_port();
  options.hello_first = true;
  std::atomic<bool> over = false;
  std::atomic<int> admitted = 0;
  Server server(options, [&](Stream& stream) {
    const auto first = stream.read();
    if (first && first.value().header.kind == 1) {
      stream.admit();
      ++admitted;
    }
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  const std::shared_ptr<void> ending(nullptr, [&](void*) { over = true; });
  std::vector<std::unique_ptr<Stream>> streams;
  const auto greet = [&](uint16_t kind) {
    Header header;
    header.kind = kind;
    streams.push_back(connected(server));
    return streams.back()->write(header).ok();
  };
  for (int i = 0; i < 70; ++i) ASSERT_TRUE(greet(1)) << "members are no strangers";
  ASSERT_TRUE(eventually([&] { return admitted == 70; }));
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(greet(2));
  EXPECT_TRUE(eventually([&] {
    return !connect(testing::address_of(server), {.security = {}, .patience = std::chrono::milliseconds(100)}).ok();
  }));
}

TEST(Hostile, PeersThatDoNotHangUpLeaveTheirPlacesToOthers) {
  ServerOptions options = any_port();
  options.most_streams = 4;
  options.linger = std::chrono::hours(1);
  std::atomic<int> handled = 0;
  Server server(options, [&](Stream&) { ++handled; });
  const size_t threads = threads_here();
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 1; i <= 30; ++i) {
    streams.push_back(connected(server));
    ASSERT_TRUE(eventually([&] { return handled == i; }));
    EXPECT_THAT(streams.back()->read().failure().message(), HasSubstr("the peer ended the stream"));
  }
  // Ended threads are joined when the next connection arrives.
  EXPECT_TRUE(eventually([&] {
    tcp_connection(server.port());
    return threads_here() <= threads + 4 + 4;
  })) << threads_here()
      << " threads, before " << threads << "; gRPC may have made some of its own";
}

TEST(Hostile, NoFilesLeftIsReportedOnce) {
  ServerOptions options = any_port();
  std::atomic<int> failures = 0;
  std::promise<std::string> line;
  options.on_failure = [&](const std::string& text) {
    if (++failures == 1) line.set_value(text);
  };
  Server server(options, echo);
  expect_still_serving(server);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const std::shared_ptr<void> restoring(nullptr, [&](void*) { setrlimit(RLIMIT_NOFILE, &before); });
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(server.port()));
  std::future<std::string> told = line.get_future();
  // Connections of earlier tests may close just now and leave room for the new one; then it is tried again.
  auto state = std::future_status::timeout;
  for (int attempt = 0; attempt < 50 && state != std::future_status::ready; ++attempt) {
    setrlimit(RLIMIT_NOFILE, &before);
    const base::FileHandle peer = tcp_connection(server.port());  // its socket is made before the limit is lowered
    const base::FileHandle second(socket(AF_INET, SOCK_STREAM, 0));
    const rlimit few{static_cast<rlim_t>(second.get() + 1), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    ::connect(second.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    state = told.wait_for(std::chrono::seconds(2));
  }
  ASSERT_EQ(state, std::future_status::ready);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(told.get(), HasSubstr("cannot accept connections at "));
  expect_still_serving(server);
  EXPECT_EQ(failures, 1);
}

/// A client that calls any method and sends messages that are not frames.
std::string answer_to(const Server& server, const char* method, const std::string& message) {
  core::start_library();
  const core::ChannelPtr channel = core::make_channel(testing::address_of(server), nullptr, nullptr, 1 << 20);
  const core::QueuePtr queue = core::make_pluck_queue();
  const core::CallPtr call(grpc_channel_create_call(channel.get(), nullptr, GRPC_PROPAGATE_DEFAULTS, queue.get(),
                                                    grpc_slice_from_static_string(method), nullptr,
                                                    core::deadline_in(std::chrono::seconds(100)), nullptr));
  grpc_slice slice = grpc_slice_from_copied_buffer(message.data(), message.size());
  const core::BufferPtr buffer(grpc_raw_byte_buffer_create(&slice, 1));
  grpc_slice_unref(slice);
  grpc_metadata_array trailing;
  grpc_metadata_array_init(&trailing);
  grpc_status_code status = GRPC_STATUS_OK;
  grpc_slice details = grpc_empty_slice();
  grpc_metadata_array initial;
  grpc_metadata_array_init(&initial);
  grpc_byte_buffer* received = nullptr;
  grpc_op ops[5]{};
  ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  ops[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY;
  ops[1].op = GRPC_OP_SEND_MESSAGE;
  ops[1].data.send_message.send_message = buffer.get();
  ops[2].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
  ops[2].data.recv_status_on_client = {&trailing, &status, &details, nullptr};
  ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
  ops[3].data.recv_initial_metadata.recv_initial_metadata = &initial;
  ops[4].op = GRPC_OP_RECV_MESSAGE;
  ops[4].data.recv_message.recv_message = &received;
  grpc_call_start_batch(call.get(), ops, 5, &ops, nullptr);
  grpc_completion_queue_pluck(queue.get(), &ops, gpr_inf_future(GPR_CLOCK_MONOTONIC), nullptr);
  grpc_metadata_array_destroy(&trailing);
  grpc_metadata_array_destroy(&initial);
  grpc_byte_buffer_destroy(received);
  EXPECT_NE(status, GRPC_STATUS_DEADLINE_EXCEEDED);
  return core::take_text(details);
}

std::string frame_bytes(size_t announced, size_t carried) {
  const HeaderBytes header = encode_header({}, announced);
  return std::string(reinterpret_cast<const char*>(header.data()), header.size()) + std::string(carried, 'x');
}

TEST(Hostile, MessagesThatAreNoFramesEndTheStreamWithAReason) {
  ServerOptions options = any_port();
  options.largest_payload = 1000;
  Server server(options, echo);
  EXPECT_THAT(answer_to(server, core::kMethod, "short"), HasSubstr("5 bytes is too short for a frame"));
  EXPECT_THAT(answer_to(server, core::kMethod, std::string(64, 'x')), HasSubstr("another protocol"));
  EXPECT_THAT(answer_to(server, core::kMethod, frame_bytes(100, 99)),
              HasSubstr("announces 100 bytes of payload but has 99"));
  EXPECT_THAT(answer_to(server, core::kMethod, frame_bytes(~size_t{0}, 10)), HasSubstr("but has 10"));
  EXPECT_THAT(answer_to(server, core::kMethod, frame_bytes(1001, 1001)), HasSubstr("larger than max"));
  EXPECT_THAT(answer_to(server, "/lockstep.Cluster/Other", frame_bytes(1, 1)), HasSubstr("no such method"));
  expect_still_serving(server);
}

}  // namespace
}  // namespace lockstep::transport
