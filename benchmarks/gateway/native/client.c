/* A client that is never in the way: closed loop, one thread, every read stamped.

   client --port P [--connections N] [--ramp S] [--warm S] [--seconds S] [--requests N] [--tokens N] [--stream 0|1]
          [--bytes N] [--leave N] [--timeout S] [--header LINE] [--path PATH] [--watch PID]…

   The window opens when ramp and warm-up are over; with --requests it is the whole run. What it counts, and the CPU of
   the watched processes, is of the window. An answer's chunks carry the instant of their writing (see engine.c). It
   prints one JSON object. --leave N closes each connection after N chunks. --bytes is the size of the whole body. */
#include "wire.h"
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define READ_BYTES (256 << 10)
#define PIDS_MAX 64
#define KINDS_MAX 32

static struct {
    int port, connections, stream;
    long requests, tokens, bytes, leave;
    double ramp_s, warm_s, seconds, timeout_s;
    const char *header, *path;
    int pids[PIDS_MAX], pid_count;
} asked = {.connections = 1, .stream = 1, .tokens = 16, .seconds = 4, .timeout_s = 30, .path = "/v1/chat/completions"};

enum framing { SIZED, CHUNKED, OPEN_ENDED };
enum part { SIZE_LINE, DATA, DATA_END, TRAILER };

typedef struct {
    int fd, opened, active;
    int64_t begun_ns, heard_ns;
    buffer head, line; /* line: of the chunk's size, or of an event, when a read cuts it */
    int head_over, status, events, closes, done, told_error;
    enum framing framing;
    enum part part;
    int64_t left;
    long tokens;
} conn;

static int poll_fd;
static buffer request;
static char *text; /* what was read */
static int64_t window_ns, end_ns;
static long begun, over, active;
static struct { long requests, chunks; } seen;
static sample delay_us, first_us, ttft_us, whole_us;
static struct { const char *name; long count; } failures[KINDS_MAX];

static void fail_count(const char *kind) {
    for (int i = 0; i < KINDS_MAX; i++) {
        if (!failures[i].name) failures[i].name = strdup(kind);
        if (!strcmp(failures[i].name, kind)) {
            failures[i].count++;
            return;
        }
    }
}

static int in_window(int64_t at_ns) { return at_ns >= window_ns && at_ns < end_ns; }

/* The request, once for all. */

static void make_request(void) {
    buffer body = {0};
    char start[256], end[] = "\"}]}";
    append(&body, start, snprintf(start, sizeof start, "{\"model\":\"mock\",\"stream\":%s,\"max_tokens\":%ld,\"messages\":"
           "[{\"role\":\"user\",\"content\":\"", asked.stream ? "true" : "false", asked.tokens));
    while ((long)(body.size + sizeof end - 1) < asked.bytes) append(&body, "hello " + body.size % 6, 1);
    append(&body, end, sizeof end - 1);
    char head[1024];
    int n = snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                     "%s%sContent-Length: %zu\r\n\r\n", asked.path, asked.port, asked.header ? asked.header : "",
                     asked.header ? "\r\n" : "", body.size);
    append(&request, head, n);
    append(&request, body.bytes, body.size);
}

/* Connections. */

static int dial(conn *c) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(asked.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) {
        close(fd);
        return 0;
    }
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &e);
    c->fd = fd;
    return c->opened = 1;
}

static void hang_up(conn *c) {
    if (c->opened) close(c->fd);
    c->opened = 0;
}

static void ended(conn *c) {
    c->active = 0;
    active--;
    over++;
}

static void failed(conn *c, const char *kind) {
    fail_count(kind);
    hang_up(c);
    ended(c);
}

static void begin(conn *c) {
    c->active = 1;
    active++;
    begun++;
    c->head.size = c->line.size = c->head_over = c->status = c->events = c->closes = c->done = c->told_error = 0;
    c->tokens = 0;
    c->framing = OPEN_ENDED;
    c->part = SIZE_LINE;
    c->begun_ns = c->heard_ns = now_ns();
    if (!c->opened && !dial(c)) {
        failed(c, "no connection");
        return;
    }
    for (size_t sent = 0; sent < request.size;) { /* blocking: an answer can wait, half a request cannot */
        ssize_t n = send(c->fd, request.bytes + sent, request.size - sent, MSG_NOSIGNAL);
        if (n < 0) {
            failed(c, "broken while sending");
            return;
        }
        sent += n;
    }
}

static void succeeded(conn *c, int64_t at_ns) {
    if (c->status != 200) {
        char kind[32];
        snprintf(kind, sizeof kind, "status %d", c->status);
        fail_count(kind);
    } else if (asked.stream && (c->told_error || !c->done || c->tokens != asked.tokens)) {
        fail_count(c->told_error ? "error event" : c->done ? "tokens missing" : "no [DONE]");
    } else if (in_window(at_ns)) {
        seen.requests++;
        observe(&whole_us, (at_ns - c->begun_ns) / 100);
    }
    if (c->closes || c->framing == OPEN_ENDED) hang_up(c);
    ended(c);
}

/* Answers. */

static int64_t stamp_in(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '"')) at++;
    const char *digit = at;
    int64_t value = 0;
    for (; digit < end && *digit >= '0' && *digit <= '9'; digit++) value = value * 10 + (*digit - '0');
    return digit - at == 19 ? value : 0;
}

static void token(conn *c, int64_t stamp_ns, int64_t at_ns) {
    int first = !c->tokens++;
    if (!in_window(at_ns)) return;
    seen.chunks++;
    observe(&delay_us, (at_ns - stamp_ns) / 100);
    if (!first) return;
    observe(&first_us, (at_ns - stamp_ns) / 100);
    observe(&ttft_us, (at_ns - c->begun_ns) / 100);
}

static void event_line(conn *c, const char *line, size_t size, int64_t at_ns) {
    static const char CONTENT[] = "\"content\":";
    if (size < 6 || memcmp(line, "data:", 5)) return;
    const char *at = memmem(line, size, CONTENT, sizeof CONTENT - 1);
    int64_t stamp_ns = at ? stamp_in(at + sizeof CONTENT - 1, line + size) : 0;
    if (stamp_ns)
        token(c, stamp_ns, at_ns);
    else if (memmem(line, size, "[DONE]", 6))
        c->done = 1;
    else if (memmem(line, size, "\"error\"", 7))
        c->told_error = 1;
}

static void payload(conn *c, const char *bytes, size_t size, int64_t at_ns) {
    if (!c->events) return;
    while (size) {
        const char *end = memchr(bytes, '\n', size);
        if (!end) {
            append(&c->line, bytes, size);
            return;
        }
        size_t part = end - bytes;
        if (c->line.size) {
            append(&c->line, bytes, part);
            event_line(c, c->line.bytes, c->line.size, at_ns);
            c->line.size = 0;
        } else {
            event_line(c, bytes, part, at_ns);
        }
        bytes += part + 1;
        size -= part + 1;
    }
}

/* A chunk's size line, or a part of one; how much of the bytes it was. */
static size_t size_line(conn *c, const char *bytes, size_t size) {
    const char *end = memchr(bytes, '\n', size);
    size_t taken = end ? (size_t)(end - bytes) + 1 : size;
    append(&c->head, bytes, taken);
    if (!end) return taken;
    append(&c->head, "", 1);
    if (c->part == TRAILER) {
        c->left = c->head.size == 3 ? -1 : 0; /* an empty line is the end */
    } else {
        c->left = strtoll(c->head.bytes, NULL, 16);
        c->part = c->left ? DATA : TRAILER;
    }
    c->head.size = 0;
    return taken;
}

static int chunked(conn *c, const char *bytes, size_t size, int64_t at_ns) {
    while (size) {
        size_t taken;
        if (c->part == DATA) {
            taken = (int64_t)size < c->left ? size : (size_t)c->left;
            payload(c, bytes, taken, at_ns);
            if (!(c->left -= taken)) c->part = DATA_END, c->left = 2;
        } else if (c->part == DATA_END) {
            taken = (int64_t)size < c->left ? size : (size_t)c->left;
            if (!(c->left -= taken)) c->part = SIZE_LINE;
        } else {
            taken = size_line(c, bytes, size);
            if (c->part == TRAILER && c->left < 0) return 1;
        }
        bytes += taken;
        size -= taken;
    }
    return 0;
}

static void read_head(conn *c, size_t size) {
    const char *said;
    c->head_over = 1;
    c->status = atoi(c->head.bytes + 9);
    said = header(c->head.bytes, size, "content-type");
    c->events = said && !strncasecmp(said, "text/event-stream", 17);
    said = header(c->head.bytes, size, "connection");
    c->closes = said && !strncasecmp(said, "close", 5);
    if (header(c->head.bytes, size, "transfer-encoding")) {
        c->framing = CHUNKED;
    } else if ((said = header(c->head.bytes, size, "content-length"))) {
        c->framing = SIZED;
        c->left = strtoll(said, NULL, 10);
    }
}

/* Whether the answer is whole. */
static int feed(conn *c, const char *bytes, size_t size, int64_t at_ns) {
    buffer rest = {0};
    if (!c->head_over) {
        append(&c->head, bytes, size);
        char *end = memmem(c->head.bytes, c->head.size, "\r\n\r\n", 4);
        if (!end) return 0;
        size_t head = end - c->head.bytes + 2;
        read_head(c, head);
        size = c->head.size - head - 2;
        append(&rest, end + 4, size);
        bytes = rest.bytes;
        c->head.size = 0;
    }
    int whole = 0;
    if (c->framing == CHUNKED) {
        whole = chunked(c, bytes, size, at_ns);
    } else {
        payload(c, bytes, size, at_ns);
        whole = c->framing == SIZED && (c->left -= size) <= 0;
    }
    free(rest.bytes);
    return whole;
}

static void readable(conn *c) {
    ssize_t n = recv(c->fd, text, READ_BYTES, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (!c->active) { /* the other side closes a quiet connection */
        hang_up(c);
        return;
    }
    c->heard_ns = now_ns();
    if (n == 0 && c->head_over && c->framing == OPEN_ENDED)
        succeeded(c, c->heard_ns);
    else if (n <= 0)
        failed(c, n ? "reset" : c->head_over ? "no end" : "no answer");
    else if (feed(c, text, n, c->heard_ns))
        succeeded(c, c->heard_ns);
    else if (asked.leave && c->tokens >= asked.leave) {
        hang_up(c);
        ended(c);
    }
}

/* The CPU of the watched processes, user and system, in ns. */
static int64_t cpu_ns(void) {
    int64_t ticks = 0;
    for (int i = 0; i < asked.pid_count; i++) {
        char path[40], row[1024] = "";
        long user = 0, kernel = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", asked.pids[i]);
        FILE *in = fopen(path, "r");
        if (!in) continue;
        size_t n = fread(row, 1, sizeof row - 1, in);
        fclose(in);
        row[n] = 0;
        char *past_name = strrchr(row, ')');
        if (past_name && sscanf(past_name + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &kernel) == 2)
            ticks += user + kernel;
    }
    return ticks * (1000000000 / sysconf(_SC_CLK_TCK));
}

static void look_for_late(conn *conns, int64_t at_ns) {
    for (int i = 0; i < asked.connections; i++)
        if (conns[i].active && at_ns - conns[i].heard_ns > asked.timeout_s * 1e9) failed(&conns[i], "silence");
}

static int wants_more(int i, int64_t at_ns, int64_t start_ns) {
    if (asked.requests ? begun >= asked.requests : at_ns >= end_ns) return 0;
    return at_ns - start_ns >= asked.ramp_s * 1e9 * i / asked.connections;
}

static void load(void) {
    conn *conns = calloc(asked.connections, sizeof *conns);
    struct epoll_event ready[256];
    int64_t start_ns = now_ns(), looked_ns = start_ns, cpu_before_ns = 0;
    int opened = 0;
    window_ns = asked.requests ? start_ns : start_ns + (int64_t)((asked.ramp_s + asked.warm_s) * 1e9);
    end_ns = asked.requests ? INT64_MAX : window_ns + (int64_t)(asked.seconds * 1e9);
    for (;;) {
        int64_t at_ns = now_ns();
        if (!opened && at_ns >= window_ns) opened = 1, cpu_before_ns = cpu_ns();
        if (asked.requests ? over >= asked.requests : at_ns >= end_ns) break;
        if (at_ns - looked_ns > 1000000) { /* those that ramp up, and those that failed */
            looked_ns = at_ns;
            look_for_late(conns, at_ns);
            for (int i = 0; i < asked.connections; i++)
                if (!conns[i].active && wants_more(i, at_ns, start_ns)) begin(&conns[i]);
        }
        int n = epoll_wait(poll_fd, ready, 256, 1);
        for (int i = 0; i < n; i++) {
            conn *c = ready[i].data.ptr;
            readable(c);
            if (!c->active && c->opened && wants_more(0, at_ns, start_ns)) begin(c);
        }
    }
    int64_t last_ns = now_ns(), cpu_after_ns = cpu_ns();
    printf("{\"window_s\":%.6f,\"begin_ns\":%lld,\"end_ns\":%lld,\"cpu_s\":%.3f,\"requests\":%ld,\"chunks\":%ld,"
           "\"begun\":%ld,\"failures\":{", (last_ns - window_ns) / 1e9, (long long)window_ns, (long long)last_ns,
           (cpu_after_ns - cpu_before_ns) / 1e9, seen.requests, seen.chunks, begun);
}

static void report(void) {
    for (int i = 0; i < KINDS_MAX && failures[i].name; i++)
        printf("%s\"%s\":%ld", i ? "," : "", failures[i].name, failures[i].count);
    printf("},");
    print_sample(stdout, "delay_ms", &delay_us, 1e-4);
    printf(",");
    print_sample(stdout, "first_delay_ms", &first_us, 1e-4);
    printf(",");
    print_sample(stdout, "ttft_ms", &ttft_us, 1e-4);
    printf(",");
    print_sample(stdout, "whole_ms", &whole_us, 1e-4);
    printf("}\n");
}

static void understand(int argc, char **argv) {
    static const struct option known[] = {
        {"port", 1, 0, 'p'},   {"connections", 1, 0, 'c'}, {"ramp", 1, 0, 'r'},    {"warm", 1, 0, 'w'},
        {"seconds", 1, 0, 's'}, {"requests", 1, 0, 'n'},    {"tokens", 1, 0, 't'},  {"stream", 1, 0, 'x'},
        {"bytes", 1, 0, 'b'},  {"leave", 1, 0, 'l'},       {"timeout", 1, 0, 'o'}, {"header", 1, 0, 'h'},
        {"path", 1, 0, 'a'},   {"watch", 1, 0, 'W'},       {0, 0, 0, 0}};
    for (int o; (o = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (o) {
        case 'p': asked.port = atoi(optarg); break;
        case 'c': asked.connections = atoi(optarg); break;
        case 'r': asked.ramp_s = atof(optarg); break;
        case 'w': asked.warm_s = atof(optarg); break;
        case 's': asked.seconds = atof(optarg); break;
        case 'n': asked.requests = atol(optarg); break;
        case 't': asked.tokens = atol(optarg); break;
        case 'x': asked.stream = atoi(optarg); break;
        case 'b': asked.bytes = atol(optarg); break;
        case 'l': asked.leave = atol(optarg); break;
        case 'o': asked.timeout_s = atof(optarg); break;
        case 'h': asked.header = optarg; break;
        case 'a': asked.path = optarg; break;
        case 'W': if (asked.pid_count < PIDS_MAX) asked.pids[asked.pid_count++] = atoi(optarg); break;
        default: exit(2);
        }
    }
    if (!asked.port) {
        fprintf(stderr, "client: --port is missing\n");
        exit(2);
    }
}

int main(int argc, char **argv) {
    understand(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1);
    if (!(text = malloc(READ_BYTES))) die("malloc");
    poll_fd = epoll_create1(0);
    make_request();
    load();
    report();
    return 0;
}
