/* The way of nearly every piece of a stream, compiled: one read from the engine, one write to the client.

   What it does is what Link.data_received does with a piece that is whole chunks: write it, remember it. To the parser
   such a piece would be no news: it stands between two chunks before and behind it. Whatever is not ordinary is handed
   back, and the link goes on as if there were no splice. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SOURCE
#define SOURCE ""        /* what it was built from: withstand.compiled */
#endif
#define READ_BYTES 65536
#define DIGITS_MAX 6     /* of a chunk's size: a piece has fewer bytes */
#define AT_ONCE 256

typedef struct {
    PyObject_HEAD
    int epoll;
} Splices;

typedef struct {
    PyObject_HEAD
    Splices *among;     /* NULL = it is over */
    int from, to;
    PyObject *owner;    /* the Link: `spliced(data, sent)` is called at the end */
    PyObject *remember; /* called with each piece */
} Splice;

static char buffer[READ_BYTES]; /* one for all: nothing is left in it behind a call */
static PyObject *s_spliced;

/* Whether it is chunks and nothing else, none of them the last. */
static int is_whole(const char *at, Py_ssize_t n) {
    const char *const end = at + n;
    while (at < end) {
        Py_ssize_t size = 0;
        int digits = 0;
        for (; at < end && digits <= DIGITS_MAX; at++, digits++) {
            const char c = *at;
            if (c >= '0' && c <= '9')
                size = size << 4 | (c - '0');
            else if (c >= 'a' && c <= 'f')
                size = size << 4 | (c - 'a' + 10);
            else if (c >= 'A' && c <= 'F')
                size = size << 4 | (c - 'A' + 10);
            else
                break;
        }
        if (!size || digits > DIGITS_MAX || end - at < size + 4 || at[0] != '\r' || at[1] != '\n')
            return 0;
        at += 2 + size;
        if (at[0] != '\r' || at[1] != '\n')
            return 0;
        at += 2;
    }
    return 1;
}

/* No more of it from now on; its descriptors may be closed. */
static void leave(Splice *self) {
    Splices *among = self->among;
    if (among == NULL)
        return;
    self->among = NULL;
    if (among->epoll >= 0)
        epoll_ctl(among->epoll, EPOLL_CTL_DEL, self->from, NULL);
    Py_DECREF(among);
    Py_DECREF(self); /* the set's */
}

/* It is over: the owner goes on with what was read, of which so much has been sent. */
static int hand_back(Splice *self, Py_ssize_t n, Py_ssize_t sent) {
    PyObject *data = PyBytes_FromStringAndSize(buffer, n), *size = PyLong_FromSsize_t(sent), *done = NULL;
    leave(self);
    if (data != NULL && size != NULL)
        done = PyObject_CallMethodObjArgs(self->owner, s_spliced, data, size, NULL);
    Py_XDECREF(data);
    Py_XDECREF(size);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int pass_on(Splice *self, uint32_t events) {
    if (events != EPOLLIN) /* the engine has ended the connection, perhaps with something still to be read */
        return hand_back(self, 0, 0);
    const ssize_t n = recv(self->from, buffer, READ_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (n <= 0) /* the end is there to be read again, and an error is one to who reads next */
        return hand_back(self, 0, 0);
    if (!is_whole(buffer, n))
        return hand_back(self, n, 0);
    const ssize_t sent = send(self->to, buffer, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent != n)
        return hand_back(self, n, sent < 0 ? 0 : sent);
    PyObject *data = PyBytes_FromStringAndSize(buffer, n);
    PyObject *done = data == NULL ? NULL : PyObject_CallOneArg(self->remember, data);
    Py_XDECREF(data);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static PyObject *splice_end(Splice *self, PyObject *unused) {
    (void)unused;
    leave(self);
    Py_RETURN_NONE;
}

static int splice_traverse(Splice *self, visitproc visit, void *arg) {
    Py_VISIT(self->owner);
    Py_VISIT(self->remember);
    return 0;
}

static int splice_clear(Splice *self) {
    Py_CLEAR(self->owner);
    Py_CLEAR(self->remember);
    return 0;
}

static void splice_dealloc(Splice *self) {
    PyObject_GC_UnTrack(self);
    splice_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef splice_methods[] = {
    {"end", (PyCFunction)splice_end, METH_NOARGS, "Nothing more goes this way, and nobody is told."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject SpliceType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "withstand.gateway._splice.Splice",
    .tp_doc = "One stream's way past the interpreter.",
    .tp_basicsize = sizeof(Splice),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)splice_dealloc,
    .tp_traverse = (traverseproc)splice_traverse,
    .tp_clear = (inquiry)splice_clear,
    .tp_methods = splice_methods,
};

/* Of who is in the set only `leave` lets go, so what the kernel reports is there; who left in the same turn is over. */
static PyObject *splices_turn(Splices *self, PyObject *unused) {
    struct epoll_event ready[AT_ONCE];
    (void)unused;
    const int found = epoll_wait(self->epoll, ready, AT_ONCE, 0);
    if (found < 0 && errno != EINTR)
        return PyErr_SetFromErrno(PyExc_OSError);
    for (int i = 0; i < found; i++)
        Py_INCREF((PyObject *)ready[i].data.ptr);
    int failed = 0;
    for (int i = 0; i < found; i++) {
        Splice *splice = ready[i].data.ptr;
        if (!failed && splice->among != NULL)
            failed = pass_on(splice, ready[i].events) < 0;
        Py_DECREF(splice);
    }
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *splices_join(Splices *self, PyObject *args) {
    int from, to;
    PyObject *owner, *remember;
    if (!PyArg_ParseTuple(args, "iiOO", &from, &to, &owner, &remember))
        return NULL;
    Splice *made = PyObject_GC_New(Splice, &SpliceType);
    if (made == NULL)
        return NULL;
    made->from = from;
    made->to = to;
    made->owner = Py_NewRef(owner);
    made->remember = Py_NewRef(remember);
    made->among = NULL;
    PyObject_GC_Track((PyObject *)made);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = made};
    if (epoll_ctl(self->epoll, EPOLL_CTL_ADD, from, &event) < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(made);
        return NULL;
    }
    made->among = (Splices *)Py_NewRef((PyObject *)self);
    return Py_NewRef((PyObject *)made); /* one reference is the set's */
}

static PyObject *splices_fileno(Splices *self, PyObject *unused) {
    (void)unused;
    return PyLong_FromLong(self->epoll);
}

static PyObject *splices_close(Splices *self, PyObject *unused) {
    (void)unused;
    if (self->epoll >= 0)
        close(self->epoll);
    self->epoll = -1;
    Py_RETURN_NONE;
}

static PyObject *splices_new(PyTypeObject *type, PyObject *args, PyObject *names) {
    if (PyTuple_GET_SIZE(args) || (names != NULL && PyDict_GET_SIZE(names))) {
        PyErr_SetString(PyExc_TypeError, "splices take no arguments");
        return NULL;
    }
    Splices *self = (Splices *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (self->epoll < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void splices_dealloc(Splices *self) {
    if (self->epoll >= 0)
        close(self->epoll);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef splices_methods[] = {
    {"join", (PyCFunction)splices_join, METH_VARARGS, "From one descriptor to another, as long as all is ordinary."},
    {"turn", (PyCFunction)splices_turn, METH_NOARGS, "Pass on what has come."},
    {"fileno", (PyCFunction)splices_fileno, METH_NOARGS, "Readable when something has come."},
    {"close", (PyCFunction)splices_close, METH_NOARGS, "Give the descriptor back."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject SplicesType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "withstand.gateway._splice.Splices",
    .tp_doc = "All streams of a process that go past the interpreter.",
    .tp_basicsize = sizeof(Splices),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = splices_new,
    .tp_dealloc = (destructor)splices_dealloc,
    .tp_methods = splices_methods,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_splice", .m_size = -1};

PyMODINIT_FUNC PyInit__splice(void) {
    if (PyType_Ready(&SpliceType) < 0 || PyType_Ready(&SplicesType) < 0)
        return NULL;
    s_spliced = PyUnicode_InternFromString("spliced");
    PyObject *made = PyModule_Create(&module);
    if (s_spliced == NULL || made == NULL ||
        PyModule_AddObjectRef(made, "Splices", (PyObject *)&SplicesType) < 0 ||
        PyModule_AddStringConstant(made, "SOURCE", SOURCE) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
