# %% [markdown]
# # Own scheduler against all built-ins
#
# A scheduler is a class with one method. This notebook writes one, looks at what it does, and compares it with every built-in scheduler on the same networks.
#
# The idea: the subflow on which a segment is likely to arrive first, if what is queued goes ahead of it.
# %%
from pathlib import Path

source = '''
from anabranch import Scheduler


class Weighted(Scheduler):
    """The subflow with the lowest round trip, weighted by how full its window is."""

    def __init__(self, *, weight=1.0):
        self.weight = weight

    def decide(self, view, trigger):
        best = min(view.candidates, key=self.cost)
        self.ctx.emit("cost", self.cost(best), subflow=best.id)
        return best

    def cost(self, subflow):
        return subflow.srtt * (1.0 + self.weight * subflow.in_flight / max(subflow.cwnd, 1.0))
'''
_ = Path("weighted.py").write_text(source)
# %% [markdown]
# A module of its own, because the runs of a sweep with own algorithms are made in worker processes, which import it.
#
# ## What it does
#
# The network: a chunk of 400 kB every second over 8 Mb/s with 30 ms and 2 Mb/s with 120 ms.
# %%
import anabranch
import matplotlib.pyplot as plt
import polars as pl

network = {
    "schema": 1,
    "question": "How long does a chunk take?",
    "duration": "22 s",
    "link": {
        "wifi": {"rtt": "30 ms", "rate": "8 Mb/s", "queue": "60 kB", "loss": "0.2 %"},
        "lte": {"rtt": "120 ms", "rate": "2 Mb/s", "queue": "60 kB"},
    },
    "session": [
        {
            "paths": ["wifi", "lte"],
            "start_spread": "1 s",
            "video": {"kind": "bulk", "size": "400 kB"},
            "player": {"kind": "on-off", "duration": "20 s"},
        }
    ],
}
run = anabranch.run(network, events=True, set={"transport.scheduler": "weighted:Weighted"})
costs = run.events.filter(pl.col("event") == "noted").select("time_s", "subflow", "value")
costs.group_by("subflow").agg(pl.col("value").mean().alias("mean cost, s"), pl.len().alias("decisions")).sort("subflow")
# %% [markdown]
# What `ctx.emit` said is in the table of events. So is everything else, such as each segment with its subflow.
#
# ## Compared with all others
#
# Each with the same six seeds. The number that counts is how long a chunk takes: the mean over the chunks of a run.
# %%
names = ["weighted:Weighted", *anabranch.schedulers()]
rows = []
for name in names:
    for seed in range(1, 7):
        done = anabranch.run(network, seed=seed, set={"transport.scheduler": name})
        for chunk in done.metrics.sessions[0].downloads:
            if chunk.finished_s is not None:
                rows.append({"scheduler": name, "seed": seed, "ms": 1e3 * (chunk.finished_s - chunk.requested_s)})
chunks = pl.DataFrame(rows)
by_seed = chunks.group_by("scheduler", "seed").agg(pl.col("ms").mean())
# %%
from scipy import stats

SEEDS = 6
half = pl.col("ms").std() / SEEDS**0.5 * stats.t.ppf(0.975, SEEDS - 1)
table = by_seed.group_by("scheduler").agg(pl.col("ms").mean().alias("mean"), half.alias("half")).sort("mean")
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
colours = ["#D55E00" if name == "weighted:Weighted" else "#0072B2" for name in table["scheduler"]]
axis.barh(table["scheduler"], table["mean"], xerr=table["half"], color=colours, height=0.65, error_kw={"lw": 1})
axis.invert_yaxis()
axis.set_xlabel("mean time of a chunk of 400 kB (ms), with its 95 % interval over seeds")
plt.show()
# %% [markdown]
# ## Is the difference from the default real?
#
# A plan pairs the runs by seed, and corrects for the number of comparisons.
# %%
plan = {
    "schema": 1,
    "question": "Is the weighted scheduler faster than min-rtt?",
    "scenario": "bulk/two-paths",
    "seeds": 6,
    "set": {"duration": "10 s", "link.path1.loss": "0.5 %"},
    "vary": {"transport.scheduler": ["min-rtt", "weighted:Weighted", {"name": "weighted:Weighted", "weight": 4}]},
    "compare": {
        "metric": "goodput_bps",
        "better": "higher",
        "between": "transport.scheduler",
        "reference": "min-rtt",
        "equivalent": "2 %",
    },
}
print(*anabranch.sweep(plan, store="weights").sentences, sep="\n")
# %% [markdown]
# So this idea is `min-rtt` in disguise: the one with a quarter of the round trip stays the cheaper one, however full its window is.
# That is what a comparison is for. [`earliest`](../algorithms/schedulers/earliest.md), at the top of the figure, also asks whether to wait.
#
# The contract that built-ins keep, and a first comparison, come from one command: `anabranch check weighted:Weighted`.
