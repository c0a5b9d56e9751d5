/* Coupled congestion control of the kernel's Multipath TCP, by struct_ops: one object for each law (LAW, NAME).
 *
 * The kernel keeps loss detection (RACK), recovery (PRR), pacing and slow start after idle. The programs decide how the window
 * grows and where the threshold falls. A socket that is not a subflow, or found no slot, behaves as NewReno.
 */
#include "kernel.h"
#include "table.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>

/* The kernel loads struct_ops programs only if a licence is declared that is compatible with its own; this file has the project's. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define EEXIST 17
#define AF_INET 2
#define AF_INET6 10

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	/* Elements are allocated with their subflows: an idle table takes hardly any memory. */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct slot_key);
	__type(value, struct slot);
} abr_subflows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} abr_totals SEC(".maps");

/* What a socket remembers in its own memory. The kernel clears it with every change of the control. */
struct claim {
	__u32 token;
	__u32 slot;
	__u32 claimed;
};

static __always_inline struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct claim *claim_of(struct sock *sk)
{
	return (struct claim *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* The socket's own slot; nothing if it has none. */
static __always_inline struct slot *slot_of(struct sock *sk)
{
	struct claim *claim = claim_of(sk);
	struct slot_key key = { .token = claim->token, .slot = claim->slot };

	return claim->claimed ? bpf_map_lookup_elem(&abr_subflows, &key) : 0;
}

static __always_inline struct totals *totals(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&abr_totals, &zero);
}

static __always_inline struct law_window window_of(struct sock *sk, const struct slot *slot)
{
	struct law_window window = {
		.cwnd = tcp(sk)->snd_cwnd, .ssthresh = tcp(sk)->snd_ssthresh, .fraction = slot->fraction,
	};

	return window;
}

static __always_inline void publish(struct sock *sk, struct slot *slot, __u64 window)
{
	struct tcp_sock *tp = tcp(sk);

	slot->window = window;
	slot->rtt_us = tp->srtt_us >> 3;
	slot->interval = law_max(tp->bytes_acked - slot->acked_at_loss, slot->between_losses);
	slot->mss = tp->mss_cache;
	slot->in_flight = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* The connection's paths, the own one first, with its momentary window. */
static __always_inline void gather(struct sock *sk, struct slot *slot)
{
	struct law_path *path = slot->connection.path;
	struct claim *claim = claim_of(sk);
	struct slot_key key = { .token = claim->token };
	__u32 own = claim->slot;
	struct law_window window = window_of(sk, slot);

	path[0].window = law_window_of(&window);
	path[0].rtt_us = slot->rtt_us;
	path[0].interval = slot->interval;
	for (__u32 i = 0; i < LAW_SLOTS; i++) {
		struct slot *sibling = 0;

		key.slot = i;
		if (i != own)
			sibling = bpf_map_lookup_elem(&abr_subflows, &key);
		path[1 + i].window = sibling ? sibling->window : 0;
		path[1 + i].rtt_us = sibling ? sibling->rtt_us : 0;
		path[1 + i].interval = sibling ? sibling->interval : 0;
	}
}

static __always_inline void describe(struct sock *sk, struct slot *slot)
{
	struct sock_common *common = &sk->__sk_common;

	slot->family = common->skc_family;
	slot->namespace = common->skc_net.net->ns.inum;
	slot->local_port = common->skc_num;
	slot->remote_port = bpf_ntohs(common->skc_dport);
	if (slot->family == AF_INET) {
		slot->local[0] = common->skc_rcv_saddr;
		slot->remote[0] = common->skc_daddr;
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++) {
		slot->local[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
		slot->remote[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
	}
}

/* A new slot: without a window it does not count yet. */
const volatile struct slot abr_fresh = {};

/* Inserts a slot that is free and returns it; nothing if all are taken or the table is full. */
static __always_inline struct slot *claim_slot(struct claim *claim, __u32 token)
{
	struct slot_key key = { .token = token };
	long refused = -EEXIST;

	for (__u32 i = 0; i < LAW_SLOTS && refused == -EEXIST; i++) {
		key.slot = i;
		refused = bpf_map_update_elem(&abr_subflows, &key, (const void *)&abr_fresh, BPF_NOEXIST);
	}
	if (refused)
		return 0;
	claim->token = token;
	claim->slot = key.slot;
	claim->claimed = 1;
	return bpf_map_lookup_elem(&abr_subflows, &key);
}

SEC("struct_ops")
void BPF_PROG(abr_init, struct sock *sk)
{
	struct claim *claim = claim_of(sk);
	struct mptcp_subflow_context *context;
	struct totals *all = totals();
	struct slot *slot;

	claim->claimed = 0;
	if (!tcp(sk)->is_mptcp)
		return;
	context = bpf_rdonly_cast(((struct inet_connection_sock *)sk)->icsk_ulp_data,
				  bpf_core_type_id_kernel(struct mptcp_subflow_context));
	slot = context->token ? claim_slot(claim, context->token) : 0;
	if (all)
		__sync_fetch_and_add(slot ? &all->claimed : &all->degraded, 1);
	if (!slot)
		return;
	slot->subflow = context->subflow_id;
	slot->acked_at_loss = tcp(sk)->bytes_acked;
	slot->round_end = tcp(sk)->snd_una;
	describe(sk, slot);
	publish(sk, slot, (__u64)tcp(sk)->snd_cwnd << LAW_WINDOW_BITS);
}

SEC("struct_ops")
void BPF_PROG(abr_release, struct sock *sk)
{
	struct claim *claim = claim_of(sk);
	struct slot_key key = { .token = claim->token, .slot = claim->slot };
	struct totals *all = totals();

	if (!claim->claimed)
		return;
	claim->claimed = 0;
	bpf_map_delete_elem(&abr_subflows, &key);
	if (all)
		__sync_fetch_and_add(&all->released, 1);
}

/* In slow start the window may double beyond what was in flight at most; afterwards it grows only where it was the limit. */
static __always_inline bool limits(struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);

	if (tp->snd_cwnd < tp->snd_ssthresh)
		return tp->snd_cwnd < 2 * tp->max_packets_out;
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

SEC("struct_ops")
void BPF_PROG(abr_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct slot *slot = slot_of(sk);
	struct law_window window;

	if (!slot) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	window = window_of(sk, slot);
	publish(sk, slot, law_window_of(&window));
	if (!limits(sk))
		return;
	acked = law_slow_start(&window, acked);
	if (acked) {
		gather(sk, slot);
		/* Slow start may have moved the window a moment ago. */
		slot->connection.path[0].window = law_window_of(&window);
		law_grow(&window, law_increase(LAW, &slot->connection, slot->history.spiking), acked);
	}
	/* A route may limit the window (`ip route change ... cwnd N`). */
	tcp(sk)->snd_cwnd = law_min(window.cwnd, tcp(sk)->snd_cwnd_clamp);
	slot->fraction = window.fraction;
	slot->window = law_window_of(&window);
}

SEC("struct_ops")
__u32 BPF_PROG(abr_ssthresh, struct sock *sk)
{
	struct slot *slot = slot_of(sk);
	struct law_window window;
	__u64 acked;

	if (!slot)
		return tcp_reno_ssthresh(sk);
	gather(sk, slot);
	window = window_of(sk, slot);
	law_reduce(&window, law_threshold(LAW, &slot->connection, slot->history.spiking));
	slot->fraction = window.fraction;
	acked = tcp(sk)->bytes_acked;
	slot->between_losses = acked - slot->acked_at_loss;
	slot->acked_at_loss = acked;
	slot->losses++;
	/* Until the repair is complete, this is the window that siblings see. */
	publish(sk, slot, (__u64)window.ssthresh << LAW_WINDOW_BITS);
	return window.ssthresh;
}

SEC("struct_ops")
__u32 BPF_PROG(abr_undo_cwnd, struct sock *sk)
{
	__u32 cwnd = tcp_reno_undo_cwnd(sk);
	struct slot *slot = slot_of(sk);

	if (slot)
		slot->window = (__u64)law_min(cwnd, LAW_LARGEST_CWND) << LAW_WINDOW_BITS;
	return cwnd;
}

SEC("struct_ops")
void BPF_PROG(abr_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct law_window window = {};
	struct slot *slot;
	__u64 halved;

	if (event != CA_EVENT_LOSS && event != CA_EVENT_CWND_RESTART)
		return;
	slot = slot_of(sk);
	if (!slot)
		return;
	if (event == CA_EVENT_CWND_RESTART) {
		publish(sk, slot, (__u64)law_min(tcp(sk)->snd_cwnd, LAW_LARGEST_CWND) << LAW_WINDOW_BITS);
		return;
	}
	slot->timeouts++;
	/* A path that times out must not hold down the others for what it once carried. */
	slot->window = LAW_ONE_PACKET;
	if (LAW == LAW_MCC) {
		/* Theta is for losses that acknowledgments show; the threshold was set a moment ago, as if this were one. */
		halved = law_min(tcp(sk)->prior_cwnd, LAW_LARGEST_CWND);
		tcp(sk)->snd_ssthresh = law_reduce(&window, law_max(halved << (LAW_WINDOW_BITS - 1), LAW_MIN_THRESHOLD));
		slot->fraction = window.fraction;
	}
}

#if LAW == LAW_MCC
/* The last round trip of each round, for theta. */
SEC("struct_ops")
void BPF_PROG(abr_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp(sk);
	struct slot *slot = slot_of(sk);

	if (!slot)
		return;
	if (sample->rtt_us > 0)
		slot->latest_rtt_us = sample->rtt_us;
	if ((__s32)(tp->snd_una - slot->round_end) <= 0)
		return;
	slot->round_end = tp->snd_nxt;
	if (slot->latest_rtt_us)
		law_observe(&slot->history, slot->latest_rtt_us);
	slot->latest_rtt_us = 0;
}
#endif

SEC(".struct_ops.link")
struct tcp_congestion_ops abr_control = {
	.init = (void *)abr_init,
	.release = (void *)abr_release,
	.ssthresh = (void *)abr_ssthresh,
	.cong_avoid = (void *)abr_cong_avoid,
	.undo_cwnd = (void *)abr_undo_cwnd,
	.cwnd_event = (void *)abr_cwnd_event,
#if LAW == LAW_MCC
	.pkts_acked = (void *)abr_pkts_acked,
#endif
	.name = NAME,
};
