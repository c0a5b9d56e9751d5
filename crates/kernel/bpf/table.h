/* The table of subflows, which programs write and `anabranch kernel status` reads (src/table.rs has the same layout). */
#ifndef ANABRANCH_TABLE_H
#define ANABRANCH_TABLE_H

#include "law.h"

/* Each subflow has one slot of its connection: an element that it inserts, and only it changes and deletes. So there is no lock. */
struct slot_key {
	law_u32 token;
	law_u32 slot;
};

struct slot {
	/* What the siblings read. While the subflow recovers, the window is the one that recovery aims at. */
	law_u64 window;
	law_u64 interval;
	law_u32 rtt_us;
	/* The kernel's number of the subflow in its connection. */
	law_u32 subflow;

	law_u64 fraction;
	law_u64 acked_at_loss;
	law_u64 between_losses;
	struct law_history history;
	law_u32 round_end;
	law_u32 latest_rtt_us;

	/* For the status. */
	law_u32 losses;
	law_u32 timeouts;
	law_u32 mss;
	law_u32 in_flight;
	law_u32 family;
	law_u32 namespace;
	law_u32 local[4];
	law_u32 remote[4];
	/* In the host's byte order. */
	law_u32 local_port;
	law_u32 remote_port;

	/* The connection as the law gets it: only the subflow uses it, while it holds its socket. */
	struct law_connection connection;
};

/* Counters of the whole attachment. */
struct totals {
	law_u64 claimed;
	law_u64 released;
	/* Subflows that found no slot and behave as NewReno. */
	law_u64 degraded;
	/* Written by the loader: the port that was selected, or zero. */
	law_u64 port;
};

#endif
