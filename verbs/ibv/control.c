//go:build ibverbs

// The control path: devices, memory and the states of queue pairs.

#include "shim.h"

#include <string.h>

struct ibv_cq *gopgas_create_cq(struct ibv_context *context, int depth, uint64_t id, struct ibv_comp_channel *channel)
{
	return ibv_create_cq(context, depth, (void *)(uintptr_t)id, channel, 0);
}

struct ibv_mr *gopgas_reg_mr(struct ibv_pd *pd, uint64_t addr, uint64_t length, int access)
{
	return ibv_reg_mr(pd, (void *)(uintptr_t)addr, length, access);
}

struct ibv_mr *gopgas_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, uint64_t length, uint64_t addr, int fd, int access)
{
	return ibv_reg_dmabuf_mr(pd, offset, length, addr, fd, access);
}

int gopgas_query_port(struct ibv_context *context, int port, struct ibv_port_attr *attr)
{
	memset(attr, 0, sizeof *attr);
	return ibv_query_port(context, port, attr);
}

int gopgas_query_gids(struct ibv_context *context, int port, struct gopgas_gid *gids, int n)
{
	struct ibv_port_attr attr;
	struct ibv_gid_entry entry;
	int found = 0;

	if (gopgas_query_port(context, port, &attr) != 0)
		return 0;
	for (int i = 0; i < attr.gid_tbl_len && found < n; i++) {
		static const uint8_t none[16];
		if (ibv_query_gid_ex(context, port, i, &entry, 0) != 0 || memcmp(entry.gid.raw, none, 16) == 0)
			continue;
		memcpy(gids[found].gid, entry.gid.raw, 16);
		gids[found].index = i;
		gids[found].type = entry.gid_type;
		found++;
	}
	return found;
}

int gopgas_to_init(struct ibv_qp *qp, const struct gopgas_path *path)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = path->port,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int gopgas_to_rtr(struct ibv_qp *qp, const struct gopgas_path *path)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = path->mtu,
		.dest_qp_num = path->qpn,
		.rq_psn = path->recv_psn,
		.max_dest_rd_atomic = path->responder_reads,
		.min_rnr_timer = 12, // 0.64 ms
		.ah_attr = { .dlid = path->lid, .sl = path->service_level, .port_num = path->port },
	};
	if (path->lid == 0) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.hop_limit = 64;
		attr.ah_attr.grh.sgid_index = path->sgid_index;
		attr.ah_attr.grh.traffic_class = path->traffic_class;
		memcpy(attr.ah_attr.grh.dgid.raw, path->gid, 16);
	}
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int gopgas_to_rts(struct ibv_qp *qp, const struct gopgas_path *path)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = path->timeout,
		.retry_cnt = path->retries,
		.rnr_retry = 7, // for ever: a SEND waits for its receive
		.sq_psn = path->send_psn,
		.max_rd_atomic = path->initiator_reads,
	};
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int gopgas_to_state(struct ibv_qp *qp, int state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}
