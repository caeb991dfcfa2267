//go:build ibverbs

// The data path: what each post, poll and event crosses into C for.

#include "shim.h"

#include <arpa/inet.h>
#include <stdlib.h>

static uint64_t outcome(int taken, int error)
{
	return (uint64_t)(uint32_t)abs(error) << 32 | (uint32_t)taken;
}

static void fill_send(struct ibv_send_wr *wr, const struct gopgas_send *r)
{
	wr->wr_id = r->id;
	wr->opcode = r->op;
	wr->send_flags = r->flags;
	wr->imm_data = htonl(r->imm);
	if (r->op == IBV_WR_ATOMIC_FETCH_AND_ADD || r->op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr->wr.atomic.remote_addr = r->remote;
		wr->wr.atomic.compare_add = r->compare_add;
		wr->wr.atomic.swap = r->swap;
		wr->wr.atomic.rkey = r->rkey;
	} else {
		wr->wr.rdma.remote_addr = r->remote;
		wr->wr.rdma.rkey = r->rkey;
	}
}

uint64_t gopgas_post_send(struct ibv_qp *qp, const struct gopgas_send *requests, int n, struct ibv_sge *segments)
{
	struct ibv_send_wr chain[GOPGAS_BATCH], *bad = NULL;

	for (int i = 0; i < n; i++) {
		fill_send(&chain[i], &requests[i]);
		chain[i].next = i + 1 < n ? &chain[i + 1] : NULL;
		chain[i].sg_list = segments;
		chain[i].num_sge = requests[i].segments;
		segments += requests[i].segments;
	}
	int error = ibv_post_send(qp, chain, &bad);
	return outcome(error && bad ? bad - chain : n, error);
}

uint64_t gopgas_post_recv(struct ibv_qp *qp, const struct gopgas_recv *requests, int n, struct ibv_sge *segments)
{
	struct ibv_recv_wr chain[GOPGAS_BATCH], *bad = NULL;

	for (int i = 0; i < n; i++) {
		chain[i].wr_id = requests[i].id;
		chain[i].next = i + 1 < n ? &chain[i + 1] : NULL;
		chain[i].sg_list = segments;
		chain[i].num_sge = requests[i].segments;
		segments += requests[i].segments;
	}
	int error = ibv_post_recv(qp, chain, &bad);
	return outcome(error && bad ? bad - chain : n, error);
}

int gopgas_poll(struct ibv_cq *cq, struct gopgas_completion *completions, int n)
{
	struct ibv_wc wc[GOPGAS_BATCH];
	int found = ibv_poll_cq(cq, n < GOPGAS_BATCH ? n : GOPGAS_BATCH, wc);

	for (int i = 0; i < found; i++) {
		struct gopgas_completion *c = &completions[i];
		c->id = wc[i].wr_id;
		c->status = wc[i].status;
		c->op = wc[i].opcode;
		c->bytes = wc[i].byte_len;
		c->has_imm = (wc[i].wc_flags & IBV_WC_WITH_IMM) != 0;
		c->imm = c->has_imm ? ntohl(wc[i].imm_data) : 0;
		c->qp = wc[i].qp_num;
		c->vendor_error = wc[i].vendor_err;
	}
	return found;
}

int gopgas_arm(struct ibv_cq *cq, int solicited)
{
	return ibv_req_notify_cq(cq, solicited);
}

int gopgas_cq_events(struct ibv_comp_channel *channel, uint64_t *cqs, int n)
{
	struct ibv_cq *cq;
	void *id;
	int found = 0;

	while (found < n && ibv_get_cq_event(channel, &cq, &id) == 0) {
		cqs[found++] = (uintptr_t)id;
		ibv_ack_cq_events(cq, 1);
	}
	return found;
}

static uint64_t object_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		return event->element.qp->qp_num;
	case IBV_EVENT_CQ_ERR:
		return (uintptr_t)event->element.cq->cq_context;
	default:
		return 0;
	}
}

int gopgas_async_events(struct ibv_context *context, struct gopgas_event *events, int n)
{
	struct ibv_async_event event;
	int found = 0;

	while (found < n && ibv_get_async_event(context, &event) == 0) {
		events[found].type = event.event_type;
		events[found].object = object_of(&event);
		found++;
		ibv_ack_async_event(&event);
	}
	return found;
}
