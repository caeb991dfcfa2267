// What Go hands to C and back: flat structs without pointers into Go memory.

#ifndef GOPGAS_IBV_SHIM_H
#define GOPGAS_IBV_SHIM_H

#include <infiniband/verbs.h>
#include <stdint.h>

// Requests and completions that cross in one call at most.
enum { GOPGAS_BATCH = 32 };

struct gopgas_send {
	uint64_t id;
	uint64_t remote;
	uint64_t compare_add;
	uint64_t swap;
	uint32_t rkey;
	uint32_t imm;
	uint32_t op;    // enum ibv_wr_opcode
	uint32_t flags; // enum ibv_send_flags
	uint32_t segments;
	uint32_t unused;
};

struct gopgas_recv {
	uint64_t id;
	uint32_t segments;
	uint32_t unused;
};

struct gopgas_completion {
	uint64_t id;
	uint32_t status; // enum ibv_wc_status
	uint32_t op;     // enum ibv_wc_opcode, only where status is success
	uint32_t bytes;
	uint32_t imm;
	uint32_t qp;
	uint32_t vendor_error;
	uint32_t has_imm;
	uint32_t unused;
};

struct gopgas_event {
	uint32_t type;   // enum ibv_event_type
	uint32_t unused;
	uint64_t object; // number of the QP, id of the CQ, 0 for the device
};

struct gopgas_gid {
	uint8_t gid[16];
	uint32_t index;
	uint32_t type; // 0 InfiniBand, 1 RoCE v1, 2 RoCE v2
};

// All that the transitions of a queue pair need, of this end and the peer.
struct gopgas_path {
	uint8_t gid[16]; // the peer's
	uint32_t qpn;    // the peer's
	uint32_t recv_psn, send_psn;
	uint16_t lid; // the peer's, 0 for Ethernet
	uint8_t port, sgid_index, service_level, traffic_class;
	uint8_t mtu, responder_reads, initiator_reads;
	uint8_t timeout, retries;
};

// Post n requests as one chain, with their segments one after the other.
// The result is the number taken, in the low half, and an errno in the high one.
uint64_t gopgas_post_send(struct ibv_qp *qp, const struct gopgas_send *requests, int n, struct ibv_sge *segments);
uint64_t gopgas_post_recv(struct ibv_qp *qp, const struct gopgas_recv *requests, int n, struct ibv_sge *segments);

// Completions found, or a negative number.
int gopgas_poll(struct ibv_cq *cq, struct gopgas_completion *completions, int n);
int gopgas_arm(struct ibv_cq *cq, int solicited);

// Events there are, acknowledged already; never blocks on non-blocking files.
int gopgas_cq_events(struct ibv_comp_channel *channel, uint64_t *cqs, int n);
int gopgas_async_events(struct ibv_context *context, struct gopgas_event *events, int n);

struct ibv_cq *gopgas_create_cq(struct ibv_context *context, int depth, uint64_t id, struct ibv_comp_channel *channel);
struct ibv_mr *gopgas_reg_mr(struct ibv_pd *pd, uint64_t addr, uint64_t length, int access);
struct ibv_mr *gopgas_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, uint64_t length, uint64_t addr, int fd, int access);
int gopgas_query_port(struct ibv_context *context, int port, struct ibv_port_attr *attr);
int gopgas_query_gids(struct ibv_context *context, int port, struct gopgas_gid *gids, int n);

// Transitions; each returns 0 or an errno.
int gopgas_to_init(struct ibv_qp *qp, const struct gopgas_path *path);
int gopgas_to_rtr(struct ibv_qp *qp, const struct gopgas_path *path);
int gopgas_to_rts(struct ibv_qp *qp, const struct gopgas_path *path);
int gopgas_to_state(struct ibv_qp *qp, int state);

#endif
