/* Sends a file to servers, asks how they are, and fetches the file again, over the same connections.
 *
 *   session FILE COPY HOST:PORT...
 */
#include "hikyaku.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what, int code) {
    fprintf(stderr, "%s: %d: %s\n", what, code, hikyaku_error());
    return code == HIKYAKU_E_NO_ANSWER ? 5 : 1;
}

static int on_progress(void *user, uint64_t done, uint64_t all) {
    *(uint64_t *)user = done;
    return done > all; /* never: 0 goes on */
}

static void on_host(void *user, const hikyaku_host_status *status) {
    (void)user;
    if (status->error)
        printf("%s: away: %s\n", status->host, status->error);
    else
        printf("%s: up, connections: %u, free: %s\n", status->host, status->connections,
               status->free_bytes > 0 ? "some" : "unknown");
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: session FILE COPY HOST:PORT...\n");
        return 2;
    }
    const char *file = argv[1], *copy = argv[2];
    hikyaku_session *session = hikyaku_session_new((const char *const *)argv + 3, (size_t)argc - 3);
    if (!session) return failed("new", HIKYAKU_E_OTHER);
    int code;
    if ((code = hikyaku_session_set_parameter(session, "streams", "2")) < 0) return failed("streams", code);
    if ((code = hikyaku_session_start(session)) < 0) return failed("start", code);

    uint64_t seen = 0;
    hikyaku_outcome outcome;
    code = hikyaku_session_upload(session, &file, 1, "", on_progress, &seen, &outcome);
    if (code < 0) return failed("upload", code);
    printf("sent %llu files, %llu bytes, seen %llu\n", (unsigned long long)outcome.files,
           (unsigned long long)outcome.bytes, (unsigned long long)seen);
    if ((code = hikyaku_session_status(session, on_host, NULL)) < 0) return failed("status", code);

    const char *nothing = "nothing";
    code = hikyaku_session_download(session, &nothing, 1, copy, NULL, NULL, NULL);
    printf("nothing is an error: %s\n", code == HIKYAKU_E_NOT_FOUND ? "not found" : "another one");
    const char *name = basename(argv[1]);
    code = hikyaku_session_download(session, &name, 1, copy, on_progress, &seen, &outcome);
    if (code < 0) return failed("download", code);
    printf("fetched %llu files, %llu bytes, seen %llu\n", (unsigned long long)outcome.files,
           (unsigned long long)outcome.bytes, (unsigned long long)seen);
    if ((code = hikyaku_session_status(session, on_host, NULL)) < 0) return failed("status", code);
    hikyaku_session_stop(session);
    return 0;
}
