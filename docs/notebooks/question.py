# %% [markdown]
# # From a question to a figure
#
# A viewer walks out of the WiFi's reach. **Does it help to send every byte on both paths, and what does it cost?** This notebook asks a plan, looks at the
# answer with its intervals, and ends with a figure. All runs are simulated.
# %%
import anabranch
import matplotlib.pyplot as plt
import polars as pl

# %% [markdown]
# ## One run
#
# The shipped scenario `mobile/walk` has the network. A run as the last line of an input shows its summary and its figure.
# %%
run = anabranch.run("mobile/walk", seed=2)
run
# %% [markdown]
# One seed is one walk. It shows what can happen, not what usually does.
#
# ## The question as a plan
#
# Three ways to send, each with the same eight walks. `equivalent` is the difference that would not matter: half a second of frozen picture.
# %%
between = "transport.scheduler"
plan = {
    "schema": 1,
    "question": "Does it help to send every byte on both paths on a walk out of the WiFi's reach?",
    "scenario": "mobile/walk",
    "seeds": 8,
    "vary": {between: ["min-rtt", "earliest", "redundant"]},
    "compare": [
        {"metric": "stall_s", "better": "lower", "between": between, "reference": "min-rtt", "equivalent": 0.5},
        {"metric": "mean_bitrate_bps", "better": "higher", "between": between, "reference": "min-rtt"},
    ],
}
swept = anabranch.sweep(plan, store="walks")
print(*swept.sentences, sep="\n")
# %% [markdown]
# Differences are *paired*: the same walk with and without. That is why they can be certain although the walks differ much.
# %%
swept.comparisons.select("metric", between, "mean", "difference", "difference_low", "difference_high", "verdict")
# %% [markdown]
# ## The figure
#
# Means with their 95 % intervals, and every walk as a point.
# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
for axis, metric, label, scale in (
    (axes[0], "stall_s", "frozen picture (s)", 1.0),
    (axes[1], "mean_bitrate_bps", "mean bitrate (Mb/s)", 1e-6),
):
    rows = swept.comparisons.filter(pl.col("metric") == metric)
    names = rows[between].to_list()
    means = (rows["mean"] * scale).to_list()
    spread = ((rows["mean_high"] - rows["mean"]) * scale).to_list()
    axis.errorbar(means, names, xerr=spread, fmt="o", capsize=3)
    for name in names:
        walks = swept.sessions.filter(pl.col(between) == name)[metric] * scale
        axis.plot(walks, [name] * len(walks), "|", color="grey", alpha=0.6)
    axis.set_xlabel(label)
    axis.margins(y=0.2)
figure.savefig("walks.png")
plt.show()
# %% [markdown]
# ## What to say
#
# The sentences above are the answer, with their numbers. Where one says *undecided*, `anabranch.sweep(plan, store="walks", until="interval < 5 %")` adds
# seeds until the interval is narrow enough.
