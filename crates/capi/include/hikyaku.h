/* hikyaku: connections over UDP for long fat networks, encrypted, in place of TCP.
 *
 * A socket is a connection with ordered bytes in both directions. Functions that return a pointer return NULL after an
 * error, and those that return a number -1; hikyaku_error() says why, for the calling thread. One thread may send and
 * another receive on the same socket at the same time.
 *
 * Build: cc program.c -lhikyaku_c
 */
#ifndef HIKYAKU_H
#define HIKYAKU_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hikyaku_listener hikyaku_listener;
typedef struct hikyaku_socket hikyaku_socket;

/* Room for a fingerprint and its zero byte. */
#define HIKYAKU_FINGERPRINT_SIZE 64

/* Why the last function failed that failed on this thread. Valid until the next failure. */
const char *hikyaku_error(void);

/* Listens at an address such as "127.0.0.1:0" or "[::]:5300". The key is in the file `key`; it is made at the first use. */
hikyaku_listener *hikyaku_listen(const char *address, const char *key);
/* The port of a listener, which the system has chosen if 0 was given. */
int hikyaku_port(const hikyaku_listener *listener);
/* The fingerprint of the listener's key, for hikyaku_connect. */
int hikyaku_fingerprint(const hikyaku_listener *listener, char *out, size_t size);
/* Waits for the next socket, at most so many milliseconds; for ever if that is negative. */
hikyaku_socket *hikyaku_accept(const hikyaku_listener *listener, int milliseconds);
/* Ends a listener. Sockets that it has accepted end as well. */
void hikyaku_listener_close(hikyaku_listener *listener);

/* Connects to the listener whose key has this fingerprint. With NULL the key of the first use is remembered, and another
 * one is refused later. A negative time is the usual time-out, 10 seconds. */
hikyaku_socket *hikyaku_connect(const char *host, uint16_t port, const char *fingerprint, int milliseconds);

/* Sends all bytes; returns when the transport has taken them. */
int hikyaku_send(const hikyaku_socket *socket, const void *bytes, size_t length);
/* Receives from 1 to `size` bytes; 0 when the peer has finished. */
ssize_t hikyaku_recv(const hikyaku_socket *socket, void *out, size_t size);
/* Tells the peer that nothing more comes, and waits until it has everything. Receiving goes on. */
int hikyaku_finish(const hikyaku_socket *socket);
/* Sends at most so many bits a second from now on; 0 for no limit. */
int hikyaku_set_rate(const hikyaku_socket *socket, uint64_t bits_per_second);
/* Ends a socket. What was sent and not finished may be lost. */
void hikyaku_close(hikyaku_socket *socket);

#ifdef __cplusplus
}
#endif
#endif
