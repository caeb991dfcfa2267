// A libcuda.so.1 whose GPU's memory lies in memfds, so that calls, arguments, handles and errors can be tested on
// a host without a GPU. It refuses arguments that the driver would refuse.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct { uint64_t pid, fd, size, rest[5]; } Handle;
enum { COUNT = 16, CAPACITY = 64 << 20 };

static struct memory { char *at; size_t size; int fd, imported, sync; } all[COUNT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local void *current;
static int context, failure;
static char failing[64];

// fake_fail has the named call fail with a code from now on.
void fake_fail(const char *call, int code) { snprintf(failing, sizeof failing, "%s", call); failure = code; }

#define MAYBE_FAIL if (strcmp(failing, __func__) == 0) return failure
#define NEED_CONTEXT MAYBE_FAIL; if (current != &context) return 201

static struct memory *find(uint64_t p, size_t n)
{
	for (int i = 0; i < COUNT; i++)
		if (all[i].at && p >= (uint64_t)all[i].at && p + n <= (uint64_t)all[i].at + all[i].size)
			return &all[i];
	return NULL;
}

static int map(int fd, size_t n, int imported, uint64_t *p)
{
	int rc = 2;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < COUNT && rc; i++) {
		if (all[i].at)
			continue;
		char *at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at == MAP_FAILED)
			break;
		all[i] = (struct memory){ at, n, fd, imported, 0 };
		*p = (uint64_t)at;
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	if (rc)
		close(fd);
	return rc;
}

static int unmap(uint64_t p, int imported)
{
	int rc = 1;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < COUNT; i++) {
		if (!all[i].at || (uint64_t)all[i].at != p || all[i].imported != imported)
			continue;
		munmap(all[i].at, all[i].size);
		close(all[i].fd);
		all[i].at = NULL;
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int cuInit(unsigned flags) { MAYBE_FAIL; return flags ? 1 : 0; }
int cuDeviceGet(int *d, int ordinal) { MAYBE_FAIL; *d = 7; return ordinal ? 101 : 0; }
int cuDeviceGetPCIBusId(char *b, int n, int d) { MAYBE_FAIL; snprintf(b, n, "0000:3B:00.0"); return d == 7 ? 0 : 101; }
int cuDeviceTotalMem_v2(size_t *n, int d) { MAYBE_FAIL; *n = CAPACITY; return d == 7 ? 0 : 101; }
int cuDeviceGetAttribute(int *v, int a, int d) { NEED_CONTEXT; *v = a == 124; return d == 7 ? 0 : 101; }
int cuDevicePrimaryCtxRetain(void **c, int d) { MAYBE_FAIL; *c = &context; return d == 7 ? 0 : 101; }
int cuDevicePrimaryCtxRelease_v2(int d) { MAYBE_FAIL; return d == 7 ? 0 : 101; }
int cuCtxSetCurrent(void *c) { MAYBE_FAIL; current = c; return 0; }

int cuMemAlloc_v2(uint64_t *p, size_t n)
{
	NEED_CONTEXT;
	if (n == 0 || n % (2 << 20))
		return 1;
	if (n > CAPACITY)
		return 2;
	int fd = memfd_create("fakegpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, n) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return 2;
	return map(fd, n, 0, p);
}
int cuMemFree_v2(uint64_t p) { NEED_CONTEXT; return unmap(p, 0); }

int cuPointerSetAttribute(const int *v, int a, uint64_t p)
{
	NEED_CONTEXT;
	struct memory *m = find(p, 1);
	if (!m || a != 6 || *v != 1)
		return 1;
	m->sync = 1;
	return 0;
}
int cuPointerGetAttribute(int *v, int a, uint64_t p)
{
	NEED_CONTEXT;
	struct memory *m = find(p, 1);
	if (!m)
		return 1;
	switch (a) {
	case 2: *v = 2; return 0;
	case 6: *v = m->sync; return 0;
	case 9: *v = 0; return 0;
	}
	return 1;
}

#ifndef OLD
int cuMemGetHandleForAddressRange(int *fd, uint64_t p, size_t n, int kind, unsigned long long flags)
{
	NEED_CONTEXT;
	struct memory *m = find(p, n);
	if (!m || kind != 1 || flags)
		return 1;
	*fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
	return *fd < 0 ? 304 : 0;
}
#endif

static struct { char *at; size_t size; } locked[COUNT];

int cuMemHostRegister_v2(void *p, size_t n, unsigned flags)
{
	NEED_CONTEXT;
	int rc = !p || !n || flags ? 1 : 2;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < COUNT; i++)
		if (locked[i].at && (char *)p < locked[i].at + locked[i].size && locked[i].at < (char *)p + n)
			rc = 712;
	for (int i = 0; i < COUNT && rc == 2; i++)
		if (!locked[i].at) {
			locked[i].at = p;
			locked[i].size = n;
			rc = 0;
		}
	pthread_mutex_unlock(&lock);
	return rc;
}
int cuMemHostUnregister(void *p)
{
	NEED_CONTEXT;
	int rc = 713;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < COUNT; i++)
		if (p && locked[i].at == p) {
			locked[i].at = NULL;
			rc = 0;
		}
	pthread_mutex_unlock(&lock);
	return rc;
}

int cuIpcGetMemHandle(Handle *h, uint64_t p)
{
	NEED_CONTEXT;
	struct memory *m = find(p, 1);
	if (!m || m->imported)
		return 1;
	*h = (Handle){ getpid(), m->fd, m->size, { 11, 12, 13, 14, 15 } };
	return 0;
}
int cuIpcOpenMemHandle_v2(uint64_t *p, Handle h, unsigned flags)
{
	char path[64];
	NEED_CONTEXT;
	for (int i = 0; i < 5; i++)
		if (h.rest[i] != 11 + (uint64_t)i)
			return 400;
	if (flags != 1)
		return 1;
	if (h.pid == (uint64_t)getpid())
		return 201;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)h.pid, (int)h.fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? 400 : map(fd, h.size, 1, p);
}
int cuIpcCloseMemHandle(uint64_t p) { NEED_CONTEXT; return unmap(p, 1); }

#ifndef BROKEN
int cuMemcpyHtoD_v2(uint64_t d, const void *s, size_t n)
{
	NEED_CONTEXT;
	if (!find(d, n))
		return 700;
	memcpy((void *)d, s, n);
	return 0;
}
#endif
int cuMemcpyDtoH_v2(void *d, uint64_t s, size_t n)
{
	NEED_CONTEXT;
	if (!find(s, n))
		return 700;
	memcpy(d, (void *)s, n);
	return 0;
}
// A copy is not there before the stream was synchronized.
static struct { uint64_t to, from; size_t n; } due[COUNT];
static int copies;
int cuMemcpyDtoDAsync_v2(uint64_t d, uint64_t s, size_t n, void *stream)
{
	int rc = 0;
	NEED_CONTEXT;
	if (!find(d, n) || !find(s, n) || stream)
		return 700;
	pthread_mutex_lock(&lock);
	if (copies == COUNT) {
		rc = 999;
	} else {
		due[copies].to = d;
		due[copies].from = s;
		due[copies++].n = n;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}
int cuStreamSynchronize(void *stream)
{
	NEED_CONTEXT;
	pthread_mutex_lock(&lock);
	while (copies > 0) {
		copies--;
		memmove((void *)due[copies].to, (void *)due[copies].from, due[copies].n);
	}
	pthread_mutex_unlock(&lock);
	return stream ? 400 : 0;
}
