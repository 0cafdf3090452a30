// UDT4 from memory to memory, with the command line and the report of the other peers.
//
// Built on demand against Debian's libudt (package libudt-dev):
//   c++ -O2 -o peer-udt peer-udt.cpp -ludt -lpthread
// The server takes one connection, counts for the given time from then on, prints one line of JSON
// and ends. The client sends until the server is done.

#include <arpa/inet.h>
#include <time.h>
#include <udt/udt.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

const double kStep = 0.2;       // the length of an interval, in seconds
const double kGrace = 5;        // how long a client goes on after its time
const int kChunk = 1 << 20;     // what one call may send or receive
const int kUdpBuffer = 32 << 20;  // what the UDP sockets ask for

struct Args {
    bool serves = false;
    sockaddr_in address = {};
    double seconds = 10;
    int window = 64 << 20;
    int mtu = 1500;
};

double clock_seconds(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double now() { return clock_seconds(CLOCK_MONOTONIC); }

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "peer-udt: %s\n", what.c_str());
    std::exit(2);
}

void check(int result, const char* what) {
    if (result == UDT::ERROR) {
        fail(std::string(what) + ": " + UDT::getlasterror().getErrorMessage());
    }
}

bool parse_address(const std::string& text, sockaddr_in* address) {
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos) return false;
    address->sin_family = AF_INET;
    address->sin_port = htons(static_cast<uint16_t>(std::atoi(text.c_str() + colon + 1)));
    return inet_pton(AF_INET, text.substr(0, colon).c_str(), &address->sin_addr) == 1;
}

Args parse(int count, char** words) {
    Args args;
    if (count < 2) fail("usage: peer-udt server|client --address IP:PORT [--seconds S] "
                        "[--window BYTES] [--mtu BYTES]");
    args.serves = std::strcmp(words[1], "server") == 0;
    for (int i = 2; i + 1 < count; i += 2) {
        const std::string name = words[i];
        const std::string value = words[i + 1];
        if (name == "--address") {
            if (!parse_address(value, &args.address)) fail("not an address: " + value);
        } else if (name == "--seconds") {
            args.seconds = std::atof(value.c_str());
        } else if (name == "--window") {
            args.window = std::atoi(value.c_str());
        } else if (name == "--mtu") {
            args.mtu = std::atoi(value.c_str());
        } else {
            fail("unknown option " + name);
        }
    }
    return args;
}

template <typename Value>
void set(UDTSOCKET socket, UDT::SOCKOPT option, Value value) {
    check(UDT::setsockopt(socket, 0, option, &value, sizeof value), "setsockopt");
}

UDTSOCKET make_socket(const Args& args) {
    const UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
    set(socket, UDT_MSS, args.mtu);
    // The flight window is in packets, and the receive buffer may not exceed it.
    set(socket, UDT_FC, args.window / args.mtu * 2);
    set(socket, UDT_SNDBUF, args.window);
    set(socket, UDT_RCVBUF, args.window);
    set(socket, UDP_SNDBUF, kUdpBuffer);
    set(socket, UDP_RCVBUF, kUdpBuffer);
    set(socket, UDT_RCVTIMEO, 100);
    set(socket, UDT_LINGER, linger{0, 0});
    return socket;
}

void print(const std::vector<uint64_t>& steps, double seconds, double cpu,
           const std::string& error) {
    uint64_t bytes = 0;
    std::printf("{\"intervals\":[");
    for (size_t i = 0; i < steps.size(); ++i) {
        const double start = static_cast<double>(i) * kStep;
        bytes += steps[i];
        std::printf("%s{\"start\":%.3f,\"end\":%.3f,\"bytes\":%llu}", i == 0 ? "" : ",", start,
                    start + kStep, static_cast<unsigned long long>(steps[i]));
    }
    std::printf("],\"bytes\":%llu,\"seconds\":%.6f,\"cpu_seconds\":%.6f",
                static_cast<unsigned long long>(bytes), seconds, cpu);
    if (!error.empty()) std::printf(",\"error\":\"%s\"", error.c_str());
    std::printf("}\n");
    std::fflush(stdout);
}

void serve(const Args& args) {
    const UDTSOCKET listener = make_socket(args);
    const auto* address = reinterpret_cast<const sockaddr*>(&args.address);
    check(UDT::bind(listener, address, sizeof args.address), "bind");
    check(UDT::listen(listener, 1), "listen");
    sockaddr_in from;
    int length = sizeof from;
    const UDTSOCKET socket = UDT::accept(listener, reinterpret_cast<sockaddr*>(&from), &length);
    if (socket == UDT::INVALID_SOCK) fail("accept");

    std::vector<char> buffer(kChunk);
    std::vector<uint64_t> steps;
    std::string error;
    const double start = now();
    const double cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    while (now() - start < args.seconds) {
        const int count = UDT::recv(socket, buffer.data(), kChunk, 0);
        if (count == UDT::ERROR) {
            if (UDT::getlasterror().getErrorCode() == UDT::ERRORINFO::ETIMEOUT) continue;
            error = "the connection broke";
            break;
        }
        const auto step = static_cast<size_t>((now() - start) / kStep);
        if (step >= steps.size()) steps.resize(step + 1, 0);
        steps[step] += static_cast<uint64_t>(count);
    }
    print(steps, now() - start, clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, error);
    UDT::close(socket);
    UDT::close(listener);
}

void send(const Args& args) {
    const UDTSOCKET socket = make_socket(args);
    const auto* address = reinterpret_cast<const sockaddr*>(&args.address);
    set(socket, UDT_SNDTIMEO, 100);
    check(UDT::connect(socket, address, sizeof args.address), "connect");
    const std::vector<char> buffer(kChunk, 0x5a);
    const double until = now() + args.seconds + kGrace;
    while (now() < until) {
        const int count = UDT::send(socket, buffer.data(), kChunk, 0);
        // A timeout: the buffers are full. Anything else: the server is done.
        if (count == UDT::ERROR &&
            UDT::getlasterror().getErrorCode() != UDT::ERRORINFO::ETIMEOUT) {
            break;
        }
    }
    std::printf("{\"cpu_seconds\":%.6f}\n", clock_seconds(CLOCK_PROCESS_CPUTIME_ID));
    std::fflush(stdout);
    UDT::close(socket);
}

}  // namespace

int main(int count, char** words) {
    const Args args = parse(count, words);
    UDT::startup();
    if (args.serves) {
        serve(args);
    } else {
        send(args);
    }
    // Cleaning up waits for peers that may be gone; the process ends anyway.
    std::fflush(stdout);
    std::_Exit(0);
}
