/* The short way of nearly every token, compiled: one read, its stamp, a comparison of bytes. A read of several chunks
   takes it too: where we have come late there are many of them, and they must not cost what makes us later.

   What it does is what Connection.on_event, StampClock.stamp_ns and ShortWay.take do, and in their order; they are
   the meaning of it, and what runs where it could not be built. Whatever is not ordinary goes to them. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#ifndef SOURCE
#define SOURCE ""           /* what it was built from: receiver._source */
#endif
#define READ_BYTES 16384    /* connection.READ_BYTES */
#define SCM_STAMPS 37       /* SO_TIMESTAMPING as it comes back */
#define EVERYDAY_AGE_NS 2000000 /* stamps._EVERYDAY_AGE_NS */
#define FINE_BITS 10        /* lag.FINE_BITS */
#define CHUNK_DIGITS 3      /* shortway._SIZE_LINES */
#define TOGETHER_MAX 64     /* chunks of one read; more are read in full */
#define AT_ONCE 256         /* poller.AT_ONCE */
#define CACHE_LINE 64
#define AHEAD 3             /* reads */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    int descriptor;
    Py_buffer offset, ages; /* the StampClock's, both int64 */
    PyObject *owner;        /* the Connection */
    PyObject *settled;      /* StampClock.settled_ns */
    PyObject *before, *after; /* of what is known; NULL where nothing is */
    PyObject *stamps, *texts; /* the Reply's */
    Py_ssize_t room;          /* how many characters of text it still wants */
} Receiver;

typedef struct {
    const char *begin;
    Py_ssize_t size;
} Text;

static char buffer[READ_BYTES]; /* one for all: nothing is left in it behind a call */
static PyObject *s_long_way, *s_together, *s_other, *s_broke;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void forget_pattern(Receiver *self) {
    Py_CLEAR(self->before);
    Py_CLEAR(self->after);
    Py_CLEAR(self->stamps);
    Py_CLEAR(self->texts);
}

/* The text in the chunk that begins here, and how long the chunk is; 0 = it is not like the known one. */
static Py_ssize_t text_in(Receiver *self, const char *begin, Py_ssize_t n, Text *text) {
    const Py_ssize_t before = PyBytes_GET_SIZE(self->before), after = PyBytes_GET_SIZE(self->after);
    Py_ssize_t chunk = 0, width = 0;
    for (; width < CHUNK_DIGITS && width < n; width++) {
        const char c = begin[width];
        if (c >= '1' && c <= '9')
            chunk = chunk << 4 | (c - '0');
        else if (c >= 'a' && c <= 'f')
            chunk = chunk << 4 | (c - 'a' + 10);
        else if (c == '0' && width > 0)
            chunk <<= 4;
        else
            break;
    }
    const Py_ssize_t size = chunk + 2 - before - after; /* the line end behind a chunk is learnt with what is after */
    if (size < 1 || width + 2 + chunk + 2 > n || begin[width] != '\r' || begin[width + 1] != '\n')
        return 0;
    begin += width + 2;
    if (memcmp(begin, PyBytes_AS_STRING(self->before), before) ||
        memcmp(begin + before + size, PyBytes_AS_STRING(self->after), after))
        return 0;
    *text = (Text){begin + before, size};
    for (Py_ssize_t i = 0; i < size; i++) {
        const unsigned char c = text->begin[i];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
            return 0;
    }
    return width + 2 + chunk + 2;
}

/* How many chunks were counted; 0 = the read is to be read in full, -1 = an exception. */
static int take(Receiver *self, Py_ssize_t n, PyObject *stamp) {
    Text texts[TOGETHER_MAX];
    int found = 0;
    for (Py_ssize_t at = 0, length; at < n; at += length)
        if (found == TOGETHER_MAX || !(length = text_in(self, buffer + at, n - at, &texts[found++])))
            return 0;
    for (int i = 0; i < found; i++) {
        if (PyList_Append(self->stamps, stamp) < 0)
            return -1;
        if (self->room <= 0)
            continue;
        PyObject *text = PyUnicode_DecodeASCII(texts[i].begin, texts[i].size, NULL);
        const int kept = text != NULL && PyList_Append(self->texts, text) == 0;
        Py_XDECREF(text);
        if (!kept)
            return -1;
        self->room -= texts[i].size;
    }
    return found;
}

/* When it arrived, or None. */
static PyObject *stamp_of(Receiver *self, struct msghdr *message, int64_t read_ns) {
    struct cmsghdr *said = CMSG_FIRSTHDR(message);
    if (said == NULL || said->cmsg_level != SOL_SOCKET || said->cmsg_type != SCM_STAMPS)
        Py_RETURN_NONE;
    int64_t time[2];
    memcpy(time, CMSG_DATA(said), sizeof time);
    const int64_t wall_ns = time[0] * 1000000000 + time[1];
    const int64_t stamp_ns = wall_ns - *(int64_t *)self->offset.buf, age_ns = read_ns - stamp_ns;
    if (age_ns >= 0 && age_ns < EVERYDAY_AGE_NS) {
        ((int64_t *)self->ages.buf)[age_ns >> FINE_BITS]++;
        return PyLong_FromLongLong(stamp_ns);
    }
    PyObject *wall = PyLong_FromLongLong(wall_ns), *read = PyLong_FromLongLong(read_ns), *settled = NULL;
    if (wall != NULL && read != NULL)
        settled = PyObject_CallFunctionObjArgs(self->settled, wall, read, NULL);
    Py_XDECREF(wall);
    Py_XDECREF(read);
    return settled;
}

/* A number, to a method of it; with no name, to itself. */
static PyObject *told(PyObject *whom, PyObject *name, long number) {
    PyObject *boxed = PyLong_FromLong(number), *done = NULL;
    if (boxed != NULL)
        done = name == NULL ? PyObject_CallOneArg(whom, boxed) : PyObject_CallMethodOneArg(whom, name, boxed);
    Py_XDECREF(boxed);
    return done;
}

static PyObject *receive(Receiver *self) {
    union {
        char bytes[96];
        struct cmsghdr aligned;
    } ancillary;
    struct iovec into = {buffer, READ_BYTES};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = &ancillary,
                             .msg_controllen = sizeof ancillary};
    ssize_t n;
    do
        n = recvmsg(self->descriptor, &message, 0);
    while (n < 0 && errno == EINTR && PyErr_CheckSignals() == 0);
    if (n < 0) {
        if (PyErr_Occurred())
            return NULL;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            Py_RETURN_NONE;
        return told(self->owner, s_broke, errno);
    }
    const int64_t read_ns = now_ns();
    PyObject *stamp = stamp_of(self, &message, read_ns), *done = NULL;
    if (stamp == NULL)
        return NULL;
    const int may_be_known = self->before != NULL && stamp != Py_None && n < READ_BYTES;
    const int taken = may_be_known ? take(self, n, stamp) : 0;
    if (taken == 1)
        done = Py_NewRef(Py_None);
    else if (taken >= 0) {
        PyObject *what = taken ? PyLong_FromLong(taken) : PyBytes_FromStringAndSize(buffer, n);
        PyObject *read = PyLong_FromLongLong(read_ns);
        if (what != NULL && read != NULL)
            done = PyObject_CallMethodObjArgs(self->owner, taken ? s_together : s_long_way, what, stamp, read, NULL);
        Py_XDECREF(what);
        Py_XDECREF(read);
    }
    Py_DECREF(stamp);
    return done;
}

static PyObject *on_event(Receiver *self, long events) {
    Py_INCREF(self); /* a connection may close, and let go of it, in the midst of its own event */
    PyObject *done = events == POLLIN ? receive(self) : told(self->owner, s_other, events);
    Py_DECREF(self);
    return done;
}

static PyObject *receiver_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
    if (PyVectorcall_NARGS(flags) != 1 || names != NULL) {
        PyErr_SetString(PyExc_TypeError, "a receiver is called with the events");
        return NULL;
    }
    const long events = PyLong_AsLong(args[0]);
    return events == -1 && PyErr_Occurred() ? NULL : on_event((Receiver *)object, events);
}

static PyObject *receiver_follow(Receiver *self, PyObject *args) {
    PyObject *before, *after, *stamps, *texts;
    Py_ssize_t room;
    if (!PyArg_ParseTuple(args, "SSO!O!n", &before, &after, &PyList_Type, &stamps, &PyList_Type, &texts, &room))
        return NULL;
    forget_pattern(self);
    self->before = Py_NewRef(before);
    self->after = Py_NewRef(after);
    self->stamps = Py_NewRef(stamps);
    self->texts = Py_NewRef(texts);
    self->room = room;
    Py_RETURN_NONE;
}

static PyObject *receiver_forget(Receiver *self, PyObject *unused) {
    (void)unused;
    forget_pattern(self);
    Py_RETURN_NONE;
}

static int receiver_traverse(Receiver *self, visitproc visit, void *arg) {
    Py_VISIT(self->owner);
    Py_VISIT(self->settled);
    Py_VISIT(self->before);
    Py_VISIT(self->after);
    Py_VISIT(self->stamps);
    Py_VISIT(self->texts);
    return 0;
}

static int receiver_clear(Receiver *self) {
    Py_CLEAR(self->owner);
    Py_CLEAR(self->settled);
    forget_pattern(self);
    return 0;
}

static void receiver_dealloc(Receiver *self) {
    PyObject_GC_UnTrack(self);
    receiver_clear(self);
    if (self->offset.obj != NULL)
        PyBuffer_Release(&self->offset);
    if (self->ages.obj != NULL)
        PyBuffer_Release(&self->ages);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static int has_buffer(PyObject *stamps, const char *name, Py_buffer *into, int how) {
    PyObject *array = PyObject_GetAttrString(stamps, name);
    const int had = array != NULL && PyObject_GetBuffer(array, into, how) == 0;
    Py_XDECREF(array);
    return had;
}

static PyObject *receiver_new(PyTypeObject *type, PyObject *args, PyObject *names) {
    int descriptor;
    PyObject *owner, *stamps;
    if (names != NULL && PyDict_GET_SIZE(names)) {
        PyErr_SetString(PyExc_TypeError, "a receiver's arguments have no names");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "iOO", &descriptor, &owner, &stamps))
        return NULL;
    Receiver *self = (Receiver *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->call = receiver_call;
    self->descriptor = descriptor;
    self->owner = Py_NewRef(owner);
    self->settled = PyObject_GetAttrString(stamps, "settled_ns");
    if (self->settled == NULL || !has_buffer(stamps, "offset", &self->offset, PyBUF_SIMPLE) ||
        !has_buffer(stamps, "ages", &self->ages, PyBUF_WRITABLE)) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->offset.len < 8 || self->ages.len < (EVERYDAY_AGE_NS >> FINE_BITS << 3) + 8) {
        PyErr_SetString(PyExc_ValueError, "too short for a receiver");
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyMethodDef receiver_methods[] = {
    {"follow", (PyCFunction)receiver_follow, METH_VARARGS, "Count reads that are a chunk with only the text new."},
    {"forget", (PyCFunction)receiver_forget, METH_NOARGS, "All reads take the long way again."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject ReceiverType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "withstand.load._receive.Receiver",
    .tp_doc = "One connection's reads: called with the events of its descriptor.",
    .tp_basicsize = sizeof(Receiver),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Receiver, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = receiver_new,
    .tp_dealloc = (destructor)receiver_dealloc,
    .tp_traverse = (traverseproc)receiver_traverse,
    .tp_clear = (inquiry)receiver_clear,
    .tp_methods = receiver_methods,
};

/* What a wait has found, kept as the kernel tells it: a list of pairs of numbers takes longer than the wait. */
typedef struct {
    PyObject_HEAD
    int descriptor, found;
    struct epoll_event ready[AT_ONCE];
} Round;

static PyObject *round_wait(Round *self, PyObject *timeout) {
    const double timeout_s = PyFloat_AsDouble(timeout);
    if (timeout_s == -1 && PyErr_Occurred())
        return NULL;
    int64_t left_ns = (int64_t)(timeout_s * 1e9);
    const int64_t until_ns = now_ns() + left_ns;
    do {
        const int left_ms = left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0;
        Py_BEGIN_ALLOW_THREADS
        self->found = epoll_wait(self->descriptor, self->ready, AT_ONCE, left_ms);
        Py_END_ALLOW_THREADS
        if (self->found < 0 && errno != EINTR)
            return PyErr_SetFromErrno(PyExc_OSError);
        if (self->found < 0 && PyErr_CheckSignals() < 0)
            return NULL;
        if (self->found < 0)
            left_ns = until_ns - now_ns();
    } while (self->found < 0); /* who was stopped has seen nothing yet */
    return PyLong_FromLong(self->found);
}

static PyObject *round_has(Round *self, PyObject *descriptor) {
    const long wanted = PyLong_AsLong(descriptor);
    if (wanted == -1 && PyErr_Occurred())
        return NULL;
    for (int i = 0; i < self->found; i++)
        if (self->ready[i].data.fd == wanted)
            Py_RETURN_TRUE;
    Py_RETURN_FALSE;
}

/* Who handles the i-th of what is ready; NULL = nobody. */
static PyObject *handler_of(const Round *self, int i, PyObject *handlers) {
    if (i >= self->found || self->ready[i].data.fd >= PyList_GET_SIZE(handlers))
        return NULL;
    PyObject *handler = PyList_GET_ITEM(handlers, self->ready[i].data.fd);
    return handler == Py_None ? NULL : handler;
}

/* Thousands of streams are more than a core's cache holds, and each read would wait for its receiver and the end of its
   list of stamps. So these are asked for while the reads before it are made, each a read after what points to it. */
static void expect(const Round *self, int i, PyObject *handlers) {
    PyObject *coming[AHEAD];
    for (int ahead = 0; ahead < AHEAD; ahead++)
        coming[ahead] = handler_of(self, i + ahead, handlers);
    if (coming[2] != NULL)
        for (size_t at = 0; at < sizeof(Receiver); at += CACHE_LINE)
            __builtin_prefetch((char *)coming[2] + at);
    if (coming[1] != NULL && Py_IS_TYPE(coming[1], &ReceiverType))
        __builtin_prefetch(((Receiver *)coming[1])->stamps);
    if (coming[0] != NULL && Py_IS_TYPE(coming[0], &ReceiverType) && ((Receiver *)coming[0])->stamps != NULL) {
        PyListObject *stamps = (PyListObject *)((Receiver *)coming[0])->stamps;
        __builtin_prefetch(stamps->ob_item + Py_SIZE(stamps), 1);
    }
}

/* Who is not there any more is not called. */
static PyObject *round_hand_over(Round *self, PyObject *handlers) {
    if (!PyList_Check(handlers)) {
        PyErr_SetString(PyExc_TypeError, "handlers come as a list");
        return NULL;
    }
    for (int i = 0; i < self->found; i++) {
        PyObject *handler = handler_of(self, i, handlers), *done;
        if (handler == NULL)
            continue;
        expect(self, i + 1, handlers);
        const long events = self->ready[i].events;
        Py_INCREF(handler);
        done = Py_IS_TYPE(handler, &ReceiverType) ? on_event((Receiver *)handler, events) : told(handler, NULL, events);
        Py_DECREF(handler);
        if (done == NULL)
            return NULL;
        Py_DECREF(done);
    }
    Py_RETURN_NONE;
}

static PyObject *round_new(PyTypeObject *type, PyObject *args, PyObject *names) {
    int descriptor;
    if (names != NULL && PyDict_GET_SIZE(names)) {
        PyErr_SetString(PyExc_TypeError, "a round's arguments have no names");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "i", &descriptor))
        return NULL;
    Round *self = (Round *)type->tp_alloc(type, 0);
    if (self != NULL)
        self->descriptor = descriptor;
    return (PyObject *)self;
}

static PyMethodDef round_methods[] = {
    {"wait", (PyCFunction)round_wait, METH_O, "Until something is ready, for at most so many seconds; how many are."},
    {"has", (PyCFunction)round_has, METH_O, "Whether this descriptor was found."},
    {"hand_over", (PyCFunction)round_hand_over, METH_O, "Call who handles each of what was found with its events."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject RoundType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "withstand.load._receive.Round",
    .tp_doc = "One wait after another on an epoll descriptor.",
    .tp_basicsize = sizeof(Round),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = round_new,
    .tp_methods = round_methods,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_receive", .m_size = -1};

PyMODINIT_FUNC PyInit__receive(void) {
    if (PyType_Ready(&ReceiverType) < 0 || PyType_Ready(&RoundType) < 0)
        return NULL;
    s_long_way = PyUnicode_InternFromString("take_long_way");
    s_together = PyUnicode_InternFromString("took_together");
    s_other = PyUnicode_InternFromString("on_other_events");
    s_broke = PyUnicode_InternFromString("broke");
    PyObject *made = PyModule_Create(&module);
    if (s_long_way == NULL || s_together == NULL || s_other == NULL || s_broke == NULL || made == NULL ||
        PyModule_AddObjectRef(made, "Receiver", (PyObject *)&ReceiverType) < 0 ||
        PyModule_AddObjectRef(made, "Round", (PyObject *)&RoundType) < 0 ||
        PyModule_AddStringConstant(made, "SOURCE", SOURCE) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
