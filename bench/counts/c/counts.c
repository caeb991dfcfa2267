// The peer of bench/counts: the same operations over libibverbs, by hand, between
// two queue pairs of one process that are connected to each other. It prints their
// cost, in the same words.
//
//	counts OPERATION N
//
// Operations: put_flush, get, fetch_add, put_notify. Waiting is polling.

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 8, DEPTH = 256, SIGNAL_EVERY = DEPTH / 4, RECEIVES = 64 };

// An end holds one rank's memory, completions and queue pair.
struct end {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint64_t *mem; // data, flag, result of a read or an atomic
	int unsignaled, outstanding;
};

enum { DATA, FLAG, RESULT, WORDS };

static uint64_t posts, requests, completions, polls, receives;

static void *must(void *p, const char *what) {
	if (!p) {
		perror(what);
		exit(1);
	}
	return p;
}

static double now(void) { // in microseconds
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void ok(int rc, const char *what) {
	if (rc) {
		fprintf(stderr, "%s: %s\n", what, strerror(rc < 0 ? -rc : rc));
		exit(1);
	}
}

// Returns the entry of the port's table with an IPv4-mapped address, which RoCE needs.
static int gid_index(struct ibv_context *ctx, union ibv_gid *gid) {
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	for (int i = 0; i < 16; i++)
		if (!ibv_query_gid(ctx, 1, i, gid) && !memcmp(gid->raw, mapped, sizeof mapped))
			return i;
	fprintf(stderr, "no IPv4-mapped GID on port 1\n");
	exit(1);
}

static void post_receive(struct end *e) {
	struct ibv_recv_wr wr = {0}, *bad;
	ok(ibv_post_recv(e->qp, &wr, &bad), "ibv_post_recv");
	receives++;
}

static void open_end(struct end *e, struct ibv_context *ctx, struct ibv_pd *pd) {
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	e->mem = must(aligned_alloc(4096, 4096), "memory");
	memset(e->mem, 0, 4096);
	e->mr = must(ibv_reg_mr(pd, e->mem, 4096, access), "ibv_reg_mr");
	e->cq = must(ibv_create_cq(ctx, 1024, NULL, NULL, 0), "ibv_create_cq");
	struct ibv_qp_init_attr init = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = 2 * RECEIVES, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64}};
	e->qp = must(ibv_create_qp(pd, &init), "ibv_create_qp");
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};
	ok(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	for (int i = 0; i < RECEIVES; i++)
		post_receive(e);
}

static void connect_end(struct end *e, uint32_t peer, union ibv_gid gid, int index) {
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 16,
		.min_rnr_timer = 12, .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = index, .hop_limit = 64}}};
	ok(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	struct ibv_qp_attr s = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 6, .max_rd_atomic = 16};
	ok(ibv_modify_qp(e->qp, &s, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

// post posts a chain. It has one in so many requests complete, since only completions
// give the queue's room back.
static void post(struct end *e, struct ibv_send_wr *wr) {
	struct ibv_send_wr *bad;
	for (struct ibv_send_wr *w = wr; w; w = w->next) {
		if (!(w->send_flags & IBV_SEND_SIGNALED) && e->unsignaled + 1 >= SIGNAL_EVERY)
			w->send_flags |= IBV_SEND_SIGNALED;
		e->unsignaled = w->send_flags & IBV_SEND_SIGNALED ? 0 : e->unsignaled + 1;
		e->outstanding += !e->unsignaled;
		requests++;
	}
	ok(ibv_post_send(e->qp, wr, &bad), "ibv_post_send");
	posts++;
}

// poll takes completions, and posts a receive for each one that a message took.
static void poll(struct end *e) {
	struct ibv_wc wc[32];
	int n = ibv_poll_cq(e->cq, 32, wc);
	polls++;
	for (int i = 0; i < n; i++) {
		if (wc[i].status) {
			fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		completions++;
		if (wc[i].opcode & IBV_WC_RECV)
			post_receive(e);
		else
			e->outstanding--;
	}
}

static void settle(struct end *e) {
	while (e->outstanding)
		poll(e);
}

static struct ibv_send_wr request(struct end *e, struct end *to, enum ibv_wr_opcode op, int word, struct ibv_sge *sge) {
	int brings = op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
	*sge = (struct ibv_sge){(uintptr_t)&e->mem[brings ? RESULT : word], SIZE, e->mr->lkey};
	return (struct ibv_send_wr){.opcode = op, .sg_list = sge, .num_sge = 1, .send_flags = brings ? IBV_SEND_SIGNALED : IBV_SEND_INLINE,
		.wr = {.rdma = {(uintptr_t)&to->mem[word], to->mr->rkey}}};
}

// one posts a single request.
static void one(struct end *e, struct end *to, enum ibv_wr_opcode op) {
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(e, to, op, DATA, &sge);
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)&to->mem[DATA];
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = to->mr->rkey;
	}
	post(e, &wr);
}

static void put_flush(struct end *a, struct end *b, uint64_t i) {
	a->mem[DATA] = i;
	one(a, b, IBV_WR_RDMA_WRITE);
	one(a, b, IBV_WR_RDMA_READ);
	settle(a);
}

static void get(struct end *a, struct end *b, uint64_t i) {
	(void)i;
	one(a, b, IBV_WR_RDMA_READ);
	settle(a);
}

static void fetch_add(struct end *a, struct end *b, uint64_t i) {
	(void)i;
	one(a, b, IBV_WR_ATOMIC_FETCH_AND_ADD);
	settle(a);
}

// notify sends data and its flag as one chain and has the target see it.
static void notify(struct end *a, struct end *b, uint64_t i) {
	struct ibv_sge data, flag;
	a->mem[DATA] = a->mem[FLAG] = i;
	struct ibv_send_wr second = request(a, b, IBV_WR_RDMA_WRITE_WITH_IMM, FLAG, &flag);
	second.send_flags |= IBV_SEND_SOLICITED;
	struct ibv_send_wr first = request(a, b, IBV_WR_RDMA_WRITE, DATA, &data);
	first.next = &second;
	post(a, &first);
	do // at least once, or the receives would be used up
		poll(b);
	while (__atomic_load_n(&b->mem[FLAG], __ATOMIC_ACQUIRE) != i);
}

// put_notify goes there and back, as two operations.
static void put_notify(struct end *a, struct end *b, uint64_t i) {
	if (i & 1)
		notify(a, b, i);
	else
		notify(b, a, i);
}

int main(int argc, char **argv) {
	static const struct { const char *name; void (*run)(struct end *, struct end *, uint64_t); } known[] = {
		{"put_flush", put_flush}, {"get", get}, {"fetch_add", fetch_add}, {"put_notify", put_notify}};
	void (*run)(struct end *, struct end *, uint64_t) = NULL;
	for (size_t i = 0; argc == 3 && i < sizeof known / sizeof *known; i++)
		if (!strcmp(argv[1], known[i].name))
			run = known[i].run;
	uint64_t n = run ? strtoull(argv[2], NULL, 10) : 0;
	if (!n) {
		fprintf(stderr, "usage: counts put_flush|get|fetch_add|put_notify N\n");
		return 2;
	}
	alarm(600); // ends this if a software device hangs
	int devices;
	struct ibv_device **list = ibv_get_device_list(&devices);
	if (!list || !devices) {
		fprintf(stderr, "no RDMA device\n");
		return 1;
	}
	struct ibv_context *ctx = must(ibv_open_device(list[0]), "ibv_open_device");
	struct ibv_pd *pd = must(ibv_alloc_pd(ctx), "ibv_alloc_pd");
	union ibv_gid gid;
	int index = gid_index(ctx, &gid);
	struct end a = {0}, b = {0};
	open_end(&a, ctx, pd);
	open_end(&b, ctx, pd);
	connect_end(&a, b.qp->qp_num, gid, index);
	connect_end(&b, a.qp->qp_num, gid, index);
	receives = 0;
	double began = now();
	for (uint64_t i = 1; i <= n; i++)
		run(&a, &b, i);
	double each = (now() - began) / n;
	printf("posts %lu\nrequests %lu\ncompletions %lu\nreceives %lu\npolls %lu\n", posts, requests, completions, receives, polls);
	printf("microseconds %.2f\n", each);
	return 0;
}
