/* The laws for tests on the host. */
#include "law.h"

law_s64 anabranch_law_increase(law_u32 law, struct law_connection *connection, law_u32 spiking)
{
	return law_increase(law, connection, spiking);
}

law_u64 anabranch_law_threshold(law_u32 law, struct law_connection *connection, law_u32 spiking)
{
	return law_threshold(law, connection, spiking);
}

law_u64 anabranch_law_window(const struct law_window *window)
{
	return law_window_of(window);
}

law_u32 anabranch_law_slow_start(struct law_window *window, law_u32 acked)
{
	return law_slow_start(window, acked);
}

void anabranch_law_grow(struct law_window *window, law_s64 increase, law_u32 acked)
{
	law_grow(window, increase, acked);
}

law_u32 anabranch_law_reduce(struct law_window *window, law_u64 threshold)
{
	return law_reduce(window, threshold);
}

void anabranch_law_observe(struct law_history *history, law_u32 rtt_us)
{
	law_observe(history, rtt_us);
}
