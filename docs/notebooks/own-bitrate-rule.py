# %% [markdown]
# # Own bitrate rule against BOLA, MPC and dash.js
#
# A bitrate rule is a class with one method, too. This one uses half of the measured throughput while the buffer is short, and nine tenths when it is
# not.
# %%
from pathlib import Path

source = '''
from anabranch import AbrRule


class Careful(AbrRule):
    """A share of the throughput that grows with the buffer."""

    def __init__(self, *, low=0.5, high=0.9, full_s=12.0):
        self.low, self.high, self.full_s = low, high, full_s

    def decide(self, view):
        recent = view.downloads[-5:]
        if not recent:
            return 0
        # The harmonic mean: a few fast downloads must not hide slow ones.
        slowness = 0.0
        for download in recent:
            slowness += 1.0 / download.throughput_bps
        share = self.low + (self.high - self.low) * min(view.buffer / self.full_s, 1.0)
        return view.ladder.highest_within(share * len(recent) / slowness, view.top)
'''
_ = Path("careful.py").write_text(source)
# %% [markdown]
# ## One session compared with another
#
# Two paths, one of which loses packets and whose rate varies as that of WiFi on a walk. `rule` puts the rule into the player of `bola`, so that
# everything but the decisions is the same: buffer, start-up, requests.
# %%
import anabranch
import matplotlib.pyplot as plt
import polars as pl

network = {
    "schema": 1,
    "question": "Which rule gives the best picture?",
    "duration": "240 s",
    "link": {
        "wifi": {"rtt": "30 ms", "rate": {"synthetic": "wifi-walk", "mean": "3 Mb/s"}, "loss": "0.5 %"},
        "lte": {"rtt": "90 ms", "rate": {"synthetic": "lte", "mean": "1 Mb/s"}},
    },
    "session": [{"video": {"kind": "dash", "ladder": "bbb-2s", "duration": "180 s"}, "player": "bola"}],
}
own = {"kind": "bola", "rule": "careful:Careful"}
runs = [anabranch.run(network, seed=3, set={"session.0.player": player}) for player in ("bola", own)]
anabranch.compare(*runs)
# %% [markdown]
# ## Against the others
#
# Eight seeds each. QoE is the linear one of Yin et al.: bitrate, less its changes, less 3000 kb/s for each second of stall.
# %%
players = {
    "careful": own,
    "bola": "bola",
    "robust-mpc": "robust-mpc",
    "dash.js 2.9": "dash.js-2.9",
    "dash.js 5": {"kind": "dash.js-5", "fast_switch": False},
}
plan = {
    "schema": 1,
    "question": "How does the careful rule compare with the published ones?",
    "scenario": "network.toml",
    "seeds": 8,
    "choose": {"player": {name: {"session.0.player": player} for name, player in players.items()}},
    "compare": {"metric": "qoe_linear_per_segment", "better": "higher", "between": "player", "reference": "careful"},
    "metrics": ["stall_s", "mean_bitrate_bps", "switches"],
}
_ = Path("network.toml").write_text(anabranch.Scenario(**network).text)
swept = anabranch.sweep(plan, store="rules")
print(*swept.sentences, sep="\n")
# %%
measures = ["qoe_linear_per_segment", "mean_bitrate_bps", "stall_s", "switches"]
swept.sessions.group_by("player").agg(pl.col(measures).mean()).sort("qoe_linear_per_segment", descending=True)
# %%
rows = swept.comparisons
figure, axis = plt.subplots(figsize=(7, 2.6), layout="constrained")
axis.errorbar(rows["mean"], rows["player"], xerr=rows["mean_high"] - rows["mean"], fmt="o", capsize=3)
axis.set_xlabel("linear QoE per media segment (kb/s), mean of 8 seeds with its 95 % interval")
axis.margins(y=0.15)
plt.show()
# %% [markdown]
# Which rule is best depends on the network and on what the QoE counts. Change the network, and ask again: the store keeps what was run.
