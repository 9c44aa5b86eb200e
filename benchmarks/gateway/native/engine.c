/* An engine that thinks nothing: OpenAI's HTTP with tokens on a schedule, on one core.

   engine PORT

   Every content token is the instant just before its write (ns, CLOCK_MONOTONIC, 19 digits), so that a reader on the
   same machine knows how long each chunk was on its way, through whatever parses and prints it again. GET /ctl?NAME=N
   sets one of the knobs below and tells the counters; /events tells which requests were left, and when; /last repeats
   the last body that was posted. */
#include "wire.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static struct knob {
    const char *name;
    int64_t value;
} knobs[] = {
    {"ttft_us", 20000}, /* until the first token of a stream */
    {"itl_us", 20000},
    {"delay_us", 0}, /* until an answer that is not streamed */
    {"status", 200},
    {"hang", 0},   /* 1 = never answer, 2 = stop after five tokens */
    {"die_at", 0}, /* close after so many tokens, or instead of a whole answer that is delayed; 0 = never */
    {"reset", 0},  /* close with a reset */
    {"plain", 0},  /* tokens are no stamps, so that equal requests have equal answers */
};
enum { TTFT_US, ITL_US, DELAY_US, STATUS, HANG, DIE_AT, RESET, PLAIN, KNOBS };
#define KNOB(n) (knobs[n].value)
#define HANG_AFTER 5
#define STAMP "%019lld"
#define BLOCKED_NS 1000000
#define EVENTS_MAX 4096

static const char STREAM_HEAD[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                                  "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char STREAM_END[] = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

static const char METRICS[] = "vllm:num_requests_running{model_name=\"mock\"} 0\n"
                              "vllm:num_requests_waiting{model_name=\"mock\"} 0\n";

typedef struct {
    int fd;
    buffer in, out;
    size_t written; /* of out */
    int waits_to_write, closes;
    int active, stream, chat;
    int64_t number, tokens, sent, due_ns;
    int place; /* in the heap; -1 = not there */
} conn;

static int poll_fd;
static conn **heap;
static int heap_size, heap_room;
static struct { int64_t requests, streams, chunks, left, open; } count;
static struct { int64_t at_ns, number, sent; int stream; } events[EVENTS_MAX];
static int event_count;
static sample late_ns;
static buffer last_body;

/* The heap of what is due next. */

static void put(int place, conn *c) {
    heap[place] = c;
    c->place = place;
}

static void sift_up(int place) {
    conn *c = heap[place];
    for (int up; place && heap[up = (place - 1) / 2]->due_ns > c->due_ns; place = up) put(place, heap[up]);
    put(place, c);
}

static void sift_down(int place) {
    conn *c = heap[place];
    for (int down; (down = 2 * place + 1) < heap_size; place = down) {
        if (down + 1 < heap_size && heap[down + 1]->due_ns < heap[down]->due_ns) down++;
        if (heap[down]->due_ns >= c->due_ns) break;
        put(place, heap[down]);
    }
    put(place, c);
}

static void schedule(conn *c, int64_t due_ns) {
    c->due_ns = due_ns;
    if (c->place < 0) {
        if (heap_size == heap_room && !(heap = realloc(heap, (heap_room = heap_room * 2 + 64) * sizeof *heap)))
            die("realloc");
        put(heap_size, c);
        sift_up(heap_size++);
    } else {
        sift_up(c->place);
        sift_down(c->place);
    }
}

static void unschedule(conn *c) {
    int place = c->place;
    if (place < 0) return;
    c->place = -1;
    if (place == --heap_size) return;
    conn *moved = heap[heap_size];
    put(place, moved);
    sift_up(place);
    sift_down(moved->place);
}

/* Connections. */

static void watch(conn *c, int op) {
    struct epoll_event e = {.events = EPOLLIN | (c->waits_to_write ? EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(poll_fd, op, c->fd, &e);
}

static void accept_all(int listener) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        conn *c = calloc(1, sizeof *c);
        if (!c) die("calloc");
        c->fd = fd;
        c->place = -1;
        count.open++;
        watch(c, EPOLL_CTL_ADD);
    }
}

static void hang_up(conn *c) {
    if (KNOB(RESET)) {
        struct linger now = {1, 0};
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    unschedule(c);
    close(c->fd);
    c->fd = -1; /* freed at the end of the round: an event of it may still be at hand */
    count.open--;
}

static void note_left(conn *c) {
    count.left++;
    if (event_count < EVENTS_MAX) {
        events[event_count].at_ns = now_ns();
        events[event_count].number = c->number;
        events[event_count].sent = c->sent;
        events[event_count++].stream = c->stream;
    }
}

static void lost(conn *c) {
    if (c->active) note_left(c);
    hang_up(c);
}

/* What there is to write; whether the connection lives. */
static int flush(conn *c) {
    while (c->written < c->out.size) {
        ssize_t n = write(c->fd, c->out.bytes + c->written, c->out.size - c->written);
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) {
            lost(c);
            return 0;
        }
        c->written += n;
    }
    int waits = c->written < c->out.size;
    if (!waits) c->written = c->out.size = 0;
    if (waits != c->waits_to_write) {
        c->waits_to_write = waits;
        watch(c, EPOLL_CTL_MOD);
    }
    if (!waits && c->closes && !c->active) {
        hang_up(c);
        return 0;
    }
    return 1;
}

/* Answers. */

static void say(conn *c, int status, const char *type, const char *body, size_t size) {
    char head[160];
    int n = snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status,
                     status == 200 ? "OK" : "Said So", type, size);
    append(&c->out, head, n);
    append(&c->out, body, size);
}

static void say_json(conn *c, int status, const char *json) { say(c, status, "application/json", json, strlen(json)); }

static long long stamp(void) { return KNOB(PLAIN) ? 0 : now_ns(); }

static void answer_whole(conn *c) {
    char body[512];
    const char *text = c->chat ? "\"message\":{\"role\":\"assistant\",\"content\":\"" STAMP " \"}" : "\"text\":\"" STAMP " \"";
    int n = snprintf(body, sizeof body, "{\"id\":\"cmpl-%lld\",\"object\":\"%s\",\"created\":1764280000,\"model\":\"mock\","
                     "\"choices\":[{\"index\":0,", (long long)(KNOB(PLAIN) ? 0 : c->number),
                     c->chat ? "chat.completion" : "text_completion");
    n += snprintf(body + n, sizeof body - n, text, stamp());
    n += snprintf(body + n, sizeof body - n, ",\"logprobs\":null,\"finish_reason\":\"length\"}],"
                  "\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":1,\"total_tokens\":9}}");
    c->active = 0;
    say(c, 200, "application/json", body, n);
    flush(c);
}

static void append_chunk(conn *c) {
    char event[512], size[16];
    int last = c->sent == c->tokens;
    const char *text = c->chat ? "\"delta\":{\"content\":\"" STAMP " \"}" : "\"text\":\"" STAMP " \"";
    int n = snprintf(event, sizeof event, "data: {\"id\":\"cmpl-%010lld\",\"object\":\"%s\",\"created\":1764280000,"
                     "\"model\":\"mock\",\"choices\":[{\"index\":0,", (long long)(KNOB(PLAIN) ? 0 : c->number),
                     c->chat ? "chat.completion.chunk" : "text_completion");
    n += snprintf(event + n, sizeof event - n, text, stamp());
    n += snprintf(event + n, sizeof event - n, ",\"logprobs\":null,\"finish_reason\":%s}]}\n\n",
                  last ? "\"length\"" : "null");
    append(&c->out, size, snprintf(size, sizeof size, "%x\r\n", n));
    append(&c->out, event, n);
    append(&c->out, "\r\n", 2);
}

/* The next token of a stream, at most one behind what the reader has taken. */
static void stream_on(conn *c) {
    if (c->out.size || (KNOB(HANG) == 2 && c->sent == HANG_AFTER)) {
        schedule(c, now_ns() + BLOCKED_NS);
        return;
    }
    if (late_ns.size < 1 << 24) observe(&late_ns, now_ns() - c->due_ns);
    if (!c->sent) append(&c->out, STREAM_HEAD, sizeof STREAM_HEAD - 1);
    c->sent++;
    count.chunks++;
    append_chunk(c);
    if (KNOB(DIE_AT) && c->sent >= KNOB(DIE_AT)) {
        c->active = 0;
        if (flush(c)) hang_up(c);
        return;
    }
    if (c->sent < c->tokens) {
        schedule(c, c->due_ns + KNOB(ITL_US) * 1000);
    } else {
        append(&c->out, STREAM_END, sizeof STREAM_END - 1);
        unschedule(c);
        c->active = 0;
    }
    flush(c);
}

static void go_on(conn *c) {
    if (c->stream) {
        stream_on(c);
    } else {
        unschedule(c);
        if (KNOB(DIE_AT)) {
            c->active = 0;
            hang_up(c);
            return;
        }
        answer_whole(c);
    }
}

/* Requests. */

static int64_t number_of(const char *body, size_t size, const char *field, int64_t otherwise) {
    const char *at = memmem(body, size, field, strlen(field));
    if (!at) return otherwise;
    for (at += strlen(field); at < body + size && (*at == ' ' || *at == ':'); at++) {}
    return *at == 't' ? 1 : *at == 'f' ? 0 : strtoll(at, NULL, 10);
}

static void complete(conn *c, const char *path, const char *body, size_t size) {
    last_body.size = 0;
    append(&last_body, body, size);
    c->number = ++count.requests;
    c->chat = strstr(path, "/chat/") != NULL;
    c->sent = 0;
    if (KNOB(STATUS) != 200) {
        say_json(c, KNOB(STATUS), "{\"error\":{\"message\":\"no\",\"type\":\"server_error\",\"code\":\"no\"}}");
        return;
    }
    c->active = 1;
    c->stream = number_of(body, size, "\"stream\"", 0) == 1;
    c->tokens = number_of(body, size, "\"max_tokens\"", number_of(body, size, "\"max_completion_tokens\"", 16));
    if (KNOB(HANG) == 1) return;
    if (c->stream) {
        count.streams++;
        schedule(c, now_ns() + KNOB(TTFT_US) * 1000);
    } else if (KNOB(DELAY_US)) {
        schedule(c, now_ns() + KNOB(DELAY_US) * 1000);
    } else {
        answer_whole(c);
    }
}

static void tell_counters(conn *c) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "{\"requests\":%lld,\"streams\":%lld,\"chunks\":%lld,\"left\":%lld,\"open\":%lld,",
            (long long)count.requests, (long long)count.streams, (long long)count.chunks, (long long)count.left,
            (long long)count.open);
    print_sample(out, "late_ms", &late_ns, 1e-6);
    fprintf(out, "}");
    fclose(out);
    say_json(c, 200, text);
    free(text);
}

static void control(conn *c, const char *query) {
    char name[40];
    for (int i = 0; i < KNOBS; i++) {
        snprintf(name, sizeof name, "%s=", knobs[i].name);
        const char *at = strstr(query, name);
        if (at && (at[-1] == '?' || at[-1] == '&')) knobs[i].value = strtoll(at + strlen(name), NULL, 10);
    }
    tell_counters(c);
    if (strstr(query, "forget=1")) {
        int64_t open = count.open;
        memset(&count, 0, sizeof count);
        count.open = open;
        late_ns.size = event_count = 0;
    }
}

static void tell_events(conn *c) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputc('[', out);
    for (int i = 0; i < event_count; i++)
        fprintf(out, "%s{\"at_ns\":%lld,\"number\":%lld,\"sent\":%lld,\"stream\":%s}", i ? "," : "",
                (long long)events[i].at_ns, (long long)events[i].number, (long long)events[i].sent,
                events[i].stream ? "true" : "false");
    fputc(']', out);
    fclose(out);
    say_json(c, 200, text);
    free(text);
}

/* What routers want to know before they send anything. */
static const char *fact(const char *path) {
    if (!strcmp(path, "/v1/models"))
        return "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\",\"created\":1764280000,"
               "\"owned_by\":\"mock\",\"max_model_len\":32768,\"root\":\"mock\",\"parent\":null}]}";
    if (!strcmp(path, "/version")) return "{\"version\":\"0.11.0\"}";
    if (strstr(path, "model_info"))
        return "{\"model_path\":\"mock\",\"tokenizer_path\":\"mock\",\"is_generation\":true}";
    if (strstr(path, "server_info"))
        return "{\"model_path\":\"mock\",\"served_model_name\":\"mock\",\"model_id\":\"mock\",\"tp_size\":1,"
               "\"dp_size\":1,\"max_total_num_tokens\":100000,\"version\":\"0.5.0\"}";
    if (!strcmp(path, "/") || strstr(path, "health") || !strcmp(path, "/ping") || strstr(path, "ness"))
        return "{\"status\":\"ok\"}";
    return NULL;
}

static void get(conn *c, const char *path) {
    if (!strncmp(path, "/ctl", 4))
        control(c, path);
    else if (!strcmp(path, "/events"))
        tell_events(c);
    else if (!strcmp(path, "/last"))
        say(c, 200, "application/octet-stream", last_body.bytes ? last_body.bytes : "", last_body.size);
    else if (!strcmp(path, "/metrics"))
        say(c, 200, "text/plain", METRICS, sizeof METRICS - 1);
    else if (fact(path))
        say_json(c, 200, fact(path));
    else
        say_json(c, 404, "{\"error\":\"not found\"}");
}

/* One request, if all of it is here. */
static int serve_one(conn *c) {
    char *end = c->in.size ? memmem(c->in.bytes, c->in.size, "\r\n\r\n", 4) : NULL;
    if (!end) return 0;
    size_t head = end - c->in.bytes;
    const char *said = header(c->in.bytes, head + 1, "content-length");
    size_t size = said ? strtoull(said, NULL, 10) : 0, all = head + 4 + size;
    if (c->in.size < all) return 0;
    said = header(c->in.bytes, head + 1, "connection");
    c->closes = said && !strncasecmp(said, "close", 5);
    char path[512] = "";
    sscanf(c->in.bytes, "%*15s %511s", path);
    if (!strncmp(c->in.bytes, "POST ", 5))
        complete(c, path, end + 4, size);
    else
        get(c, path);
    if (c->fd < 0) return 0;
    drop(&c->in, all);
    return flush(c);
}

static void readable(conn *c) {
    reserve(&c->in, 1 << 16);
    ssize_t n = read(c->fd, c->in.bytes + c->in.size, c->in.room - c->in.size);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        lost(c);
        return;
    }
    c->in.size += n;
    while (!c->active && c->fd >= 0 && serve_one(c)) {}
}

static void bury(conn *c) {
    free(c->in.bytes);
    free(c->out.bytes);
    free(c);
}

static int listen_on(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4096)) die("listen");
    return fd;
}

static void one_round(int listener) {
    struct epoll_event ready[256];
    while (heap_size && heap[0]->due_ns <= now_ns()) {
        conn *c = heap[0];
        go_on(c);
        if (c->fd < 0) bury(c);
    }
    int64_t wait_ns = heap_size ? heap[0]->due_ns - now_ns() : 1000000000;
    struct timespec wait = {wait_ns > 0 ? wait_ns / 1000000000 : 0, wait_ns > 0 ? wait_ns % 1000000000 : 0};
    int n = epoll_pwait2(poll_fd, ready, 256, &wait, NULL);
    for (int i = 0; i < n; i++) {
        conn *c = ready[i].data.ptr;
        if (!c) {
            accept_all(listener);
            continue;
        }
        if (ready[i].events & EPOLLOUT) flush(c);
        if (c->fd >= 0 && ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) readable(c);
        if (c->fd < 0) bury(c);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: engine PORT\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1);
    int listener = listen_on(atoi(argv[1]));
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    poll_fd = epoll_create1(0);
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &e);
    printf("ready\n");
    fflush(stdout);
    for (;;) one_round(listener);
}
