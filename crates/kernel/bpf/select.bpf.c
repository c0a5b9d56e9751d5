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

SEC("sockops")
int abr_select(struct bpf_sock_ops *context)
{
	bool accepted = context->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;
	struct bpf_sock *sk;
	char name[16];

	if (!accepted && context->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return 1;
	if (abr_selected.port && (!accepted || context->local_port != abr_selected.port))
		return 1;
	sk = context->sk;
	if (!sk || !bpf_skc_to_mptcp_sock(sk))
		return 1;
	for (int i = 0; i < 16; i++)
		name[i] = abr_selected.name[i];
	/* A control that is gone a moment later leaves the subflow with what it has. */
	bpf_setsockopt(context, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name));
	return 1;
}
