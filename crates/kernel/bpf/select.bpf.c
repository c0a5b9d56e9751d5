/* Gives the control to the subflows of a cgroup as they are established, or to those that a server accepts on one port. Plain TCP
 * keeps what it has. */
#include <linux/types.h>
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define IPPROTO_TCP 6
#define TCP_CONGESTION 13

/* Written by the loader: the control's name, and the port or zero. */
const volatile struct {
	char name[16];
	__u32 port;
} abr_selected = {};

struct mptcp_sock;

static bool is_selected(struct bpf_sock_ops *context)
{
	switch (context->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		return !abr_selected.port;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_RTT_CB:
		return !abr_selected.port || context->local_port == abr_selected.port;
	default:
		return false;
	}
}

/* A subflow gets the control when it is established. If it joins while a process is busy with its connection, the kernel takes it into the
 * connection a little later, and then gives it the options of the connection if some were set since: its control, too. Data shows that it
 * was taken in. So the control is set again after the first round trip with data, and not looked at any more. */
SEC("sockops")
int abr_select(struct bpf_sock_ops *context)
{
	struct bpf_sock *sk;
	char name[16];

	if (!is_selected(context))
		return 1;
	sk = context->sk;
	if (!sk || !bpf_skc_to_mptcp_sock(sk))
		return 1;
	if (context->op != BPF_SOCK_OPS_RTT_CB)
		bpf_sock_ops_cb_flags_set(context, context->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG);
	else if (context->data_segs_out == 0)
		return 1;
	else
		bpf_sock_ops_cb_flags_set(context, context->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_RTT_CB_FLAG);
	for (int i = 0; i < 16; i++)
		name[i] = abr_selected.name[i];
	/* A control that is gone a moment later leaves the subflow with what it has. */
	bpf_setsockopt(context, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name));
	return 1;
}
