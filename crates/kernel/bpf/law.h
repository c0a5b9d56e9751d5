/* The coupled laws in fixed point: what crates/stack/src/congestion/{lia,olia,balia,mcc}.rs compute in floating point.
 *
 *   share_k            f_k = x_k / sum(x),  x_k = w_k / rtt_k                       a rate as a part of the connection's
 *   increase per acknowledged packet
 *     LIA              min(max_k(f_k^2 / w_k), 1 / w_i)
 *     OLIA             (f_i^2 + alpha_i) / w_i,  alpha_i = 1/(n |B\M|) in B\M, -1/(n |M|) in M if B\M is not empty, else 0
 *     BALIA            (f_i + f_max) (4 f_i + f_max) / 10 / w_i
 *     MCC              theta f_i^2 / w_i
 *   threshold after a loss: w_i / 2; BALIA w_i - w_i/2 min(f_max / f_i, 3/2); MCC w_i (1 - theta/2); at least 2 packets
 *
 * The quotients of the laws are written with shares because these are homogeneous: (w_i / rtt_i^2) / sum(x)^2 = f_i^2 / w_i.
 * Windows are packets with 16 fractional bits, shares have 24, increases 32, round trips are microseconds. One division by a
 * negative number would need a newer instruction set of BPF, so magnitudes are divided and signs are put back.
 *
 * The same file is compiled into the BPF programs and into a host test (tests/law.rs).
 */
#ifndef ANABRANCH_LAW_H
#define ANABRANCH_LAW_H

typedef unsigned int law_u32;
typedef unsigned long long law_u64;
typedef long long law_s64;

/* The own path is number 0, and each slot of the connection's table may hold another. */
#define LAW_SLOTS 8
#define LAW_PATHS (LAW_SLOTS + 1)

#define LAW_LIA 1
#define LAW_OLIA 2
#define LAW_BALIA 3
#define LAW_MCC 4

#define LAW_WINDOW_BITS 16
#define LAW_ONE_PACKET (1ULL << LAW_WINDOW_BITS)
/* Windows do not grow beyond 1.5 GB, for which the products below have room. */
#define LAW_LARGEST_CWND (1U << 20)
#define LAW_SHARE_BITS 24
#define LAW_SQUARE_BITS (2 * LAW_SHARE_BITS)
/* 2^48 / window is one packet over the window, with 32 fractional bits. */
#define LAW_ONE_SQUARE (1ULL << LAW_SQUARE_BITS)
/* Below it RFC 5681 lets no threshold fall. */
#define LAW_MIN_THRESHOLD (2 * LAW_ONE_PACKET)
/* Thresholds that the kernel has never set. */
#define LAW_INFINITE_THRESHOLD 0x7fffffffU

#define LAW_FN static inline __attribute__((always_inline))

/* One path of a connection; without a window it does not exist or does not count. */
struct law_path {
	law_u64 window;
	/* Payload bytes between losses, for OLIA. */
	law_u64 interval;
	law_u32 rtt_us;
	law_u32 unused;
};

/* The paths of a connection, and room for a number of each: BPF programs have 512 bytes of stack, so this lies with the subflow. */
struct law_connection {
	struct law_path path[LAW_PATHS];
	law_u64 work[LAW_PATHS];
	law_u64 veiled;
};

/* A window: whole packets are the kernel's, and `fraction` (32 bits) is what it has not got yet. */
struct law_window {
	law_u64 fraction;
	law_u32 cwnd;
	law_u32 ssthresh;
};

#define LAW_HISTORY 10

/* The last round trips of a path, for MCC. */
struct law_history {
	law_u32 sample[LAW_HISTORY];
	law_u32 count;
	law_u32 spiking;
};

/* The number of bits that a number takes; 0 for 0. */
LAW_FN law_u32 law_bits(law_u64 x)
{
	law_u32 bits = x != 0;

	for (law_u32 step = 32; step; step >>= 1) {
		if (x >> step) {
			x >>= step;
			bits += step;
		}
	}
	return bits;
}

LAW_FN law_u64 law_max(law_u64 a, law_u64 b)
{
	return a > b ? a : b;
}

LAW_FN law_u64 law_min(law_u64 a, law_u64 b)
{
	return a < b ? a : b;
}

/* A number by way of memory. The verifier of BPF programs follows every value that it knows a number to have, such as a count after nine
 * branches, through all that comes next; of a number from memory it knows none. */
LAW_FN law_u64 law_veil(struct law_connection *connection, law_u64 number)
{
	volatile law_u64 *veiled = &connection->veiled;

	*veiled = number;
	return *veiled;
}

/* Read anew each time, for the same reason: nine known answers are 512 cases. */
LAW_FN law_u32 law_counts(const struct law_path *path)
{
	const volatile struct law_path *anew = path;

	return anew->window && anew->rtt_us;
}

/* The window with its fraction, as the sums take it. */
LAW_FN law_u64 law_window_of(const struct law_window *window)
{
	return ((law_u64)law_min(window->cwnd, LAW_LARGEST_CWND) << LAW_WINDOW_BITS) +
	       (window->fraction >> (32 - LAW_WINDOW_BITS));
}

/* Each path's part of the connection's rate. Rates have up to 56 bits; 36 leave room for nine of them and 24 fractional bits. */
LAW_FN void law_shares(struct law_connection *connection)
{
	const struct law_path *path = connection->path;
	law_u64 *share = connection->work;
	law_u64 largest = 0, sum = 0;
	law_u32 bits;

	for (int k = 0; k < LAW_PATHS; k++) {
		share[k] = law_counts(&path[k]) ? (path[k].window << 20) / path[k].rtt_us : 0;
		largest = law_veil(connection, law_max(largest, share[k]));
	}
	bits = law_veil(connection, law_bits(largest));
	bits = bits > 36 ? (bits - 36) & 31 : 0;
	for (int k = 0; k < LAW_PATHS; k++) {
		share[k] >>= bits;
		sum += share[k];
	}
	sum = law_max(sum, 1);
	for (int k = 0; k < LAW_PATHS; k++)
		share[k] = (share[k] << LAW_SHARE_BITS) / sum;
}

LAW_FN law_u64 law_largest(struct law_connection *connection)
{
	law_u64 largest = 0;

	for (int k = 0; k < LAW_PATHS; k++)
		largest = law_veil(connection, law_max(largest, connection->work[k]));
	return largest;
}

/* Shifts all values left until the largest has 62 bits: the divisions that follow lose nothing that a comparison sees. */
LAW_FN void law_scale(struct law_connection *connection)
{
	law_u64 *value = connection->work;
	law_u32 bits = law_veil(connection, law_bits(law_largest(connection)));
	law_u32 shift = bits < 62 ? (62 - bits) & 63 : 0;

	for (int k = 0; k < LAW_PATHS; k++)
		value[k] <<= shift;
}

/* Bytes between losses over the squared round trip, in a unit that all paths share. */
LAW_FN void law_qualities(struct law_connection *connection)
{
	const struct law_path *path = connection->path;
	law_u64 *quality = connection->work;

	for (int k = 0; k < LAW_PATHS; k++)
		quality[k] = law_counts(&path[k]) ? law_min(path[k].interval, (1ULL << 62) - 1) : 0;
	for (int times = 0; times < 2; times++) {
		law_scale(connection);
		for (int k = 0; k < LAW_PATHS; k++)
			quality[k] = path[k].rtt_us ? quality[k] / path[k].rtt_us : 0;
	}
}

/* OLIA's alpha of the own path, with 48 fractional bits. Whole packets are compared, so that several windows can be the largest. */
LAW_FN law_s64 law_olia_alpha(struct law_connection *connection)
{
	const struct law_path *path = connection->path;
	const law_u64 *quality = connection->work;
	law_u64 best, widest = 0;
	law_u64 paths = 0, neglected = 0, largest = 0;

	law_qualities(connection);
	/* Qualities that differ by less than a millionth are equal: rounding must not decide. */
	best = law_largest(connection);
	best -= best >> 20;
	for (int k = 0; k < LAW_PATHS; k++) {
		if (law_counts(&path[k]))
			widest = law_veil(connection, law_max(widest, path[k].window >> LAW_WINDOW_BITS));
	}
	for (int k = 0; k < LAW_PATHS; k++) {
		if (!law_counts(&path[k]))
			continue;
		paths = law_veil(connection, paths + 1);
		if (path[k].window >> LAW_WINDOW_BITS >= widest)
			largest = law_veil(connection, largest + 1);
		else if (quality[k] >= best)
			neglected = law_veil(connection, neglected + 1);
	}
	if (!neglected || !paths || !largest)
		return 0;
	if (path[0].window >> LAW_WINDOW_BITS >= widest)
		return -(law_s64)(LAW_ONE_SQUARE / (paths * largest));
	return quality[0] >= best ? LAW_ONE_SQUARE / (paths * neglected) : 0;
}

/* MCC's theta with 16 fractional bits: the smallest window's part of all while the round trip shoots up, otherwise one. */
LAW_FN law_u64 law_theta(struct law_connection *connection, law_u32 spiking)
{
	const struct law_path *path = connection->path;
	law_u64 least = ~0ULL, sum = 0;

	if (!spiking)
		return 1 << 16;
	for (int k = 0; k < LAW_PATHS; k++) {
		if (law_counts(&path[k])) {
			least = law_veil(connection, law_min(least, path[k].window));
			sum = law_veil(connection, sum + path[k].window);
		}
	}
	return sum ? (least << 16) / sum : 1 << 16;
}

/* LIA's alpha over the sum of all windows, with 32 fractional bits. */
LAW_FN law_u64 law_lia_increase(struct law_connection *connection)
{
	const struct law_path *path = connection->path;
	const law_u64 *share = connection->work;
	law_u64 largest = 0;

	for (int k = 0; k < LAW_PATHS; k++) {
		if (law_counts(&path[k]))
			largest = law_veil(connection, law_max(largest, share[k] * share[k] / path[k].window));
	}
	return largest;
}

/* What an acknowledged packet adds to the own window, with 32 fractional bits. Without a round trip, as NewReno. */
LAW_FN law_s64 law_increase(law_u32 law, struct law_connection *connection, law_u32 spiking)
{
	const struct law_path *path = connection->path;
	const law_u64 *share = connection->work;
	law_u64 window = law_max(path[0].window, LAW_ONE_PACKET);
	law_u64 own, best;
	law_s64 step;

	if (!law_counts(&path[0]))
		return LAW_ONE_SQUARE / window;
	law_shares(connection);
	own = share[0] * share[0];
	switch (law) {
	case LAW_LIA:
		return law_min(law_lia_increase(connection), LAW_ONE_SQUARE / window);
	case LAW_OLIA:
		step = (law_s64)own + law_olia_alpha(connection);
		return step < 0 ? -(law_s64)((law_u64)-step / window) : (law_s64)((law_u64)step / window);
	case LAW_BALIA:
		best = law_largest(connection);
		return (share[0] + best) * (4 * share[0] + best) / 10 / window;
	default:
		return (own >> 16) * law_theta(connection, spiking) / window;
	}
}

/* The threshold after a loss, in packets with 16 fractional bits. */
LAW_FN law_u64 law_threshold(law_u32 law, struct law_connection *connection, law_u32 spiking)
{
	const struct law_path *path = connection->path;
	law_u64 window = path[0].window;
	law_u64 lost = window / 2;

	if (law == LAW_BALIA && law_counts(&path[0])) {
		const law_u64 *share = connection->work;
		law_u64 lag;

		law_shares(connection);
		/* How many times faster the fastest path is, with 16 fractional bits; up to 3/2 of half a window is lost. */
		lag = (law_largest(connection) << 16) / law_max(share[0], 1);
		lost = (lost * law_min(lag, 3 << 15)) >> 16;
	} else if (law == LAW_MCC) {
		lost = (lost * law_theta(connection, spiking)) >> 16;
	}
	return law_max(window - lost, LAW_MIN_THRESHOLD);
}

/* Makes a threshold the one that recovery aims at: the kernel gets whole packets, and the window keeps the rest. */
LAW_FN law_u32 law_reduce(struct law_window *window, law_u64 threshold)
{
	window->fraction = (threshold & (LAW_ONE_PACKET - 1)) << (32 - LAW_WINDOW_BITS);
	window->ssthresh = threshold >> LAW_WINDOW_BITS;
	return window->ssthresh;
}

/* Slow start, which is not coupled; returns the acknowledged packets that are left for the law. */
LAW_FN law_u32 law_slow_start(struct law_window *window, law_u32 acked)
{
	law_u32 room;

	if (window->cwnd >= window->ssthresh)
		return acked;
	room = window->ssthresh - window->cwnd;
	if (room > acked)
		room = acked;
	window->cwnd += room;
	return acked - room;
}

/* Adds the increase of `acked` packets; the window never falls below one packet. */
LAW_FN void law_grow(struct law_window *window, law_s64 increase, law_u32 acked)
{
	law_s64 sum = ((law_s64)window->cwnd << 32) + (law_s64)window->fraction;

	if (window->cwnd >= LAW_LARGEST_CWND)
		return;
	sum += increase * (law_s64)law_min(acked, 0xffff);
	if (sum < 1LL << 32)
		sum = 1LL << 32;
	window->cwnd = sum >> 32;
	window->fraction = sum & 0xffffffff;
}

/* Takes a round trip of MCC: it shoots up if it exceeds 3/2 of the mean of the last ten, of which the newest weighs most. */
LAW_FN void law_observe(struct law_history *history, law_u32 rtt_us)
{
	law_u64 sum = 0, weights = 0;
	law_u32 first = LAW_HISTORY - law_min(history->count, LAW_HISTORY);

	/* The newest is the last; those that are missing are at the front. */
	for (law_u32 i = 0; i < LAW_HISTORY; i++) {
		if (i >= first) {
			sum += (law_u64)(i + 1 - first) * history->sample[i];
			weights += i + 1 - first;
		}
	}
	history->spiking = history->count && 2 * weights * rtt_us > 3 * sum;
	for (law_u32 i = 0; i + 1 < LAW_HISTORY; i++)
		history->sample[i] = history->sample[i + 1];
	history->sample[LAW_HISTORY - 1] = rtt_us;
	if (history->count < LAW_HISTORY)
		history->count++;
}

#endif
