/* Sends standard input to a server that sends it back, and prints what comes.
 *
 *   echo server ADDRESS KEYFILE       prints PORT FINGERPRINT, then serves one client
 *   echo client HOST PORT FINGERPRINT
 */
#include "hikyaku.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, hikyaku_error());
    return 1;
}

static int serve(const char *address, const char *key) {
    hikyaku_listener *listener = hikyaku_listen(address, key);
    if (!listener) return failed("listen");
    char fingerprint[HIKYAKU_FINGERPRINT_SIZE];
    if (hikyaku_fingerprint(listener, fingerprint, sizeof fingerprint) < 0) return failed("fingerprint");
    printf("%d %s\n", hikyaku_port(listener), fingerprint);
    fflush(stdout);

    hikyaku_socket *socket = hikyaku_accept(listener, 60000);
    if (!socket) return failed("accept");
    /* The server speaks first. */
    if (hikyaku_send(socket, "hello\n", 6) < 0) return failed("send");
    static char buffer[1 << 16];
    ssize_t length;
    while ((length = hikyaku_recv(socket, buffer, sizeof buffer)) > 0)
        if (hikyaku_send(socket, buffer, (size_t)length) < 0) return failed("send");
    if (length < 0) return failed("recv");
    if (hikyaku_finish(socket) < 0) return failed("finish");
    hikyaku_close(socket);
    hikyaku_listener_close(listener);
    return 0;
}

static void *receive(void *socket) {
    static char buffer[1 << 16];
    ssize_t length;
    while ((length = hikyaku_recv(socket, buffer, sizeof buffer)) > 0)
        fwrite(buffer, 1, (size_t)length, stdout);
    if (length < 0) fprintf(stderr, "recv: %s\n", hikyaku_error());
    return (void *)(length < 0 ? socket : NULL);
}

static int call(const char *host, const char *port, const char *fingerprint) {
    hikyaku_socket *socket = hikyaku_connect(host, (uint16_t)atoi(port), fingerprint, 5000);
    if (!socket) return failed("connect");
    pthread_t thread;
    if (pthread_create(&thread, NULL, receive, socket) != 0) return 1;
    static char buffer[1 << 16];
    size_t length;
    while ((length = fread(buffer, 1, sizeof buffer, stdin)) > 0)
        if (hikyaku_send(socket, buffer, length) < 0) return failed("send");
    if (hikyaku_finish(socket) < 0) return failed("finish");
    void *bad = NULL;
    pthread_join(thread, &bad);
    hikyaku_close(socket);
    return bad != NULL;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "server") == 0) return serve(argv[2], argv[3]);
    if (argc == 5 && strcmp(argv[1], "client") == 0) return call(argv[2], argv[3], argv[4]);
    fprintf(stderr, "usage: echo server ADDRESS KEYFILE | echo client HOST PORT FINGERPRINT\n");
    return 2;
}
