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

/* Sessions with many servers (hikyaku serve): name the hosts, set the log directory and parameters, start, and then
 * download, upload and ask for the status as often as wanted, over the same connections, until stop.
 *
 * Functions of sessions that return a number return 0, or one of HIKYAKU_E_... after an error. Callbacks are called on the
 * thread that called the function. One thread uses a session at a time; hikyaku_session_interrupt may be called by any.
 */
typedef struct hikyaku_session hikyaku_session;

enum {
    HIKYAKU_E_OTHER = -1,          /* anything else, such as a wrong argument */
    HIKYAKU_E_UNKNOWN_HOST = -2,   /* no address is known for the name of a server */
    HIKYAKU_E_NO_ANSWER = -3,      /* nothing answers there, or the connection was lost */
    HIKYAKU_E_WRONG_KEY = -4,      /* the server has another key than the one that is expected */
    HIKYAKU_E_NOT_AUTHORISED = -5, /* the server does not know this client's key */
    HIKYAKU_E_VERSION = -6,        /* the server speaks another version of the protocol */
    HIKYAKU_E_SERVER_FULL = -7,    /* the server has as many clients as it may have, or is ending */
    HIKYAKU_E_NO_FILES = -8,       /* the server does not offer files */
    HIKYAKU_E_OUTSIDE_ROOT = -9,   /* the path leads out of the root of the server */
    HIKYAKU_E_STOPPED = -10,       /* hikyaku_session_interrupt, or a callback, has ended it */
    HIKYAKU_E_DISK_FULL = -11,     /* no space is left, or the quota is used up */
    HIKYAKU_E_NOT_FOUND = -12,     /* there is no such file */
    HIKYAKU_E_DENIED = -13,        /* permission denied, or the server lets this client only read */
    HIKYAKU_E_FILE = -14           /* another failure of a file */
};

/* What came of a transfer. */
typedef struct hikyaku_outcome {
    uint64_t files;      /* transferred, and under their names */
    uint64_t bytes;      /* of these */
    uint64_t kept;       /* files that the target had already */
    uint64_t lost_hosts; /* servers whose connection was lost; others did their work */
} hikyaku_outcome;

/* A server. What is not known is -1. The texts live until the callback returns. */
typedef struct hikyaku_host_status {
    const char *host;
    const char *error; /* why it does not answer; NULL if it does */
    uint32_t connections; /* in this session */
    int is_writable;
    uint64_t round_trip_us;
    int64_t free_bytes;
    int64_t total_bytes;
    int64_t bytes_per_second; /* in the last transfer */
} hikyaku_host_status;

/* Is told the bytes that are there and the bytes of all; another number than 0 ends the transfer. */
typedef int (*hikyaku_on_progress)(void *user, uint64_t done, uint64_t all);
typedef void (*hikyaku_on_host)(void *user, const hikyaku_host_status *status);

/* Names the servers: "HOST" or "HOST:PORT" each, or one "hikyaku://HOST,HOST", or one cluster of the user's settings. */
hikyaku_session *hikyaku_session_new(const char *const *hosts, size_t count);
/* The directory for the logs of the session. It is kept, and nothing is written there yet. */
int hikyaku_session_set_log_dir(const hikyaku_session *session, const char *dir);
/* Parameters: "rate" (300m, of all servers together), "server-rate" (what each server sends at most), "window" (64MB),
 * "streams" (1 to 4 for each server), "pause" and "stagger" (5s), "carrier" (auto or tcp), "key" (a fingerprint of a server;
 * more than one may be given). */
int hikyaku_session_set_parameter(const hikyaku_session *session, const char *name, const char *value);
/* Connects to all servers; one must be there. */
int hikyaku_session_start(const hikyaku_session *session);
/* Fetches files and directories. As with scp: a directory `target` receives them, any other is the new name of a single one.
 * `progress` and `outcome` may be NULL. If some files failed, the others have been transferred. */
int hikyaku_session_download(const hikyaku_session *session, const char *const *files, size_t count, const char *target,
                             hikyaku_on_progress progress, void *user, hikyaku_outcome *outcome);
/* Sends files and directories of this machine to the servers, each file to one of them. */
int hikyaku_session_upload(const hikyaku_session *session, const char *const *files, size_t count, const char *target,
                           hikyaku_on_progress progress, void *user, hikyaku_outcome *outcome);
/* Asks all servers, and calls `each` for each of them. */
int hikyaku_session_status(const hikyaku_session *session, hikyaku_on_host each, void *user);
/* Ends the transfer that another thread has begun. A signal handler may call it. */
void hikyaku_session_interrupt(const hikyaku_session *session);
/* Ends a session and frees it. */
void hikyaku_session_stop(hikyaku_session *session);

#ifdef __cplusplus
}
#endif
#endif
