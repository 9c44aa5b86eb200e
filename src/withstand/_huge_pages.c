/* What huge_pages.py asks of the C library and of the kernel.

   Python's own allocator takes arenas of 1 MiB, and the C library's grows a heap by 128 KiB: either piece by piece, and
   so in small pages. Here arenas come two by two out of one space, and the heap grows by much at once. */

#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef SOURCE
#define SOURCE ""             /* what it was built from: withstand.compiled */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25      /* of Linux 6.1 on; an older one refuses it */
#endif
#define PAGE (2l << 20)
#define ARENA (PAGE / 2)
#define PAGES 256             /* arenas beyond them are as small as ever */
#define HEAP_STEP (32l << 20) /* of addresses; memory is taken as it is used */
#define FREE_MAX (40l << 20)  /* at its end; what is above a step is given back then */
#define MAPPED_ALONE (1l << 20)

static char *space;           /* of arenas; NULL = none */
static uint8_t halves[PAGES]; /* those of each page that are in use: bits 1 and 2 */
static char *heap;

static char *upwards(const char *address) { return (char *)(((uintptr_t)address + PAGE - 1) & ~(uintptr_t)(PAGE - 1)); }

static void *arena(void *context, size_t size) {
    (void)context;
    for (int page = 0; size == ARENA && page < PAGES; page++)
        for (int half = 0; half < 2; half++)
            if (!(halves[page] & 1 << half)) {
                halves[page] |= (uint8_t)(1 << half);
                return space + page * PAGE + half * ARENA;
            }
    void *alone = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return alone == MAP_FAILED ? NULL : alone;
}

static void arena_back(void *context, void *given, size_t size) {
    (void)context;
    const char *const at = given;
    if (at < space || at >= space + PAGES * PAGE) {
        munmap(given, size);
        return;
    }
    const long page = (at - space) / PAGE;
    halves[page] &= (uint8_t)~(1 << (at - space) % PAGE / ARENA);
    if (!halves[page])
        madvise(space + page * PAGE, PAGE, MADV_DONTNEED);
}

static PyObject *take_arenas(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (space != NULL)
        Py_RETURN_NONE;
    char *const room = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        Py_RETURN_NONE;
    if (madvise(upwards(room), PAGES * PAGE, MADV_HUGEPAGE)) {
        munmap(room, (PAGES + 1) * PAGE);
        Py_RETURN_NONE;
    }
    space = upwards(room);
    PyObjectArenaAllocator ours = {NULL, arena, arena_back};
    PyObject_SetArenaAllocator(&ours);
    Py_RETURN_NONE;
}

static PyObject *grow_heap(PyObject *self, PyObject *none) {
    (void)self, (void)none;
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, MAPPED_ALONE);
    mallopt(M_TRIM_THRESHOLD, FREE_MAX);
    mallopt(M_TOP_PAD, HEAP_STEP);
    void *const more = malloc(MAPPED_ALONE / 2);
    free(more);
    return PyBool_FromLong(more != NULL);
#else
    Py_RETURN_FALSE;
#endif
}

static PyObject *take_heap(PyObject *self, PyObject *args) {
    (void)self;
    unsigned long long begin, end;
    if (!PyArg_ParseTuple(args, "KK", &begin, &end))
        return NULL;
    heap = upwards((char *)(uintptr_t)begin);
    if ((uintptr_t)heap < end)
        madvise(heap, end - (uintptr_t)heap, MADV_HUGEPAGE);
    Py_RETURN_NONE;
}

static PyObject *settle(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    for (int page = 0; space != NULL && page < PAGES; page++)
        if (halves[page])
            madvise(space + page * PAGE, PAGE, MADV_COLLAPSE);
#ifdef __GLIBC__
    if (heap != NULL) {
        const char *const used = (char *)sbrk(0) - mallinfo2().keepcost;
        for (char *at = heap; at + PAGE <= used; at += PAGE)
            madvise(at, PAGE, MADV_COLLAPSE);
    }
#endif
    Py_RETURN_NONE;
}

static PyObject *interpreter(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    return PyLong_FromUnsignedLongLong((uintptr_t)&PyObject_Malloc);
}

static PyObject *copy_code(PyObject *self, PyObject *args) {
    (void)self;
    unsigned long long begin, end;
    if (!PyArg_ParseTuple(args, "KK", &begin, &end))
        return NULL;
    const size_t length = end - begin;
    char *const room = mmap(NULL, length + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        Py_RETURN_NONE;
    char *const copy = upwards(room);
    madvise(copy, length, MADV_HUGEPAGE);
    memcpy(copy, (const void *)(uintptr_t)begin, length);
    if (!madvise(copy, length, MADV_COLLAPSE) && !mprotect(copy, length, PROT_READ | PROT_EXEC))
        mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)begin);
    munmap(room, length + PAGE); /* without what was moved out of it */
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"take_arenas", take_arenas, METH_NOARGS, "Of Python's allocator: those to come lie on huge pages."},
    {"grow_heap", grow_heap, METH_NOARGS, "Give the C library's heap the addresses for more than is used yet."},
    {"take_heap", take_heap, METH_VARARGS, "From one address to another: put the heap on huge pages."},
    {"settle", settle, METH_NOARGS, "Move what is used onto huge pages, where it is not yet."},
    {"interpreter", interpreter, METH_NOARGS, "Where some of the interpreter's code is."},
    {"copy_code", copy_code, METH_VARARGS, "From one address to another: put a copy on huge pages in place of it."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_huge_pages", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__huge_pages(void) {
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddStringConstant(made, "SOURCE", SOURCE) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
