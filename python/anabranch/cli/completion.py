"""`anabranch completion`: what a shell needs to complete commands, options and names; and the names themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer

from anabranch import _core
from anabranch.cli.console import echo
from anabranch.library import catalogue

EXAMPLES = (
    "Example: anabranch completion bash\n\n"
    'For this shell alone: eval "$(anabranch completion bash)"\n\n'
    "For every shell: anabranch completion bash > ~/.local/share/bash-completion/completions/anabranch; "
    "anabranch completion zsh > a file `_anabranch` in a directory of $fpath; "
    "anabranch completion fish > ~/.config/fish/completions/anabranch.fish"
)


class Shell(StrEnum):
    """The shells for which there is a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_VARIABLE = "_ANABRANCH_COMPLETE"

# Bash divides words at `=` and `:`, too, and replaces only what follows the last of them. The program gets the line as
# it was typed, and what stands before in the same word is cut off its answers.
_BASH = """\
_anabranch_completion() {
    local line="${COMP_LINE:0:COMP_POINT}" value
    local typed="${line##*[[:space:]]}" last="${COMP_WORDS[COMP_CWORD]}"
    [[ $last == "=" || $last == ":" ]] && last=""
    local before="${typed%"$last"}" words
    read -ra words <<< "$line"
    [[ -z $typed ]] && words+=("")
    COMPREPLY=()
    while IFS= read -r value; do
        [[ -n $value ]] && COMPREPLY+=("${value#"$before"}")
    done < <(env COMP_WORDS="$line" COMP_CWORD=$((${#words[@]} - 1)) _ANABRANCH_COMPLETE=complete_bash "$1" 2>/dev/null)
    # What ends in `=` goes on with a value.
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _anabranch_completion anabranch"""

# More columns than any explanation has: shells take a wrapped line for another answer.
_ANY_WIDTH = "10000"


def print_script(
    shell: Annotated[Shell, typer.Argument(help="Which shell is to complete.", show_default=False)],
) -> None:
    """Print a script with which a shell completes commands, options, scenarios, algorithms, plans and papers."""
    if shell is Shell.BASH:
        echo(_BASH)
        return
    # The package documents no other way to its scripts.
    from typer._completion_shared import get_completion_script

    echo(get_completion_script(prog_name="anabranch", complete_var=_VARIABLE, shell=shell.value))


def prepare() -> None:
    """Makes the program answer shells that ask for completions, in the way of each."""
    from typer._completion_classes import completion_init

    if _VARIABLE in os.environ:
        os.environ["TERMINAL_WIDTH"] = _ANY_WIDTH
    completion_init()


Names = list[tuple[str, str]]
"""What may stand at a place, with an explanation of each."""


def _of_kind(kind: str, prefix: str) -> Iterator[tuple[str, str]]:
    for of, name, summary, _ in _core.registry():
        if of == kind and name.startswith(prefix):
            yield name, summary


def scenarios(incomplete: str) -> Names:
    """Shipped scenarios."""
    return list(_of_kind("scenarios", incomplete))


def plans(incomplete: str) -> Names:
    """Shipped plans."""
    from anabranch.experiments import plan

    return [(name, "") for name in plan.shipped() if name.startswith(incomplete)]


def papers(incomplete: str) -> Names:
    """Shipped papers, and all of them."""
    from anabranch.experiments import paper

    return [(name, "") for name in (*paper.shipped(), "all") if name.startswith(incomplete)]


def kinds(incomplete: str) -> Names:
    """What `anabranch list` can list."""
    return [(name, "") for name in catalogue.kinds() if name.startswith(incomplete)]


def listen_paths(incomplete: str) -> Names:
    """What may follow the address in `--listen`."""
    from anabranch.cli.serve.wiring import METERED

    path, comma, word = incomplete.partition(",")
    return [(f"{path},{METERED}", "Bytes cost money on this path.")] if comma and METERED.startswith(word) else []


# What a key's value is the name of.
_VALUES = {
    "scheduler": "schedulers",
    "congestion_control": "congestion-controls",
    "path_policy": "path-policies",
    "response_pacing": "response-pacings",
    "player": "players",
    "queue": "queues",
    "ladder": "ladders",
}


def overrides(incomplete: str) -> Names:
    """Keys of `--set`, and names of algorithms behind them."""
    key, separator, value = incomplete.partition("=")
    if not separator:
        return [(f"{key}=", meaning) for key, meaning in _keys() if key.startswith(incomplete)]
    kind = _VALUES.get(key.removesuffix(".name").removesuffix(".kind").rpartition(".")[2])
    names = _of_kind(kind, value) if kind else iter(())
    return [(f"{key}={name}", summary) for name, summary in names]


def _keys() -> Iterator[tuple[str, str]]:
    """The keys that stand at the same place in every scenario: those of the top and of its tables with fixed names."""
    schema = json.loads(_core.scenario_schema())
    for key, value in schema["properties"].items():
        table = _resolved(schema, value)
        if "properties" not in table:
            if table.get("type") not in ("array", "object"):
                yield key, _first_sentence(value)
            continue
        for inner, about in table["properties"].items():
            yield f"{key}.{inner}", _first_sentence(about)


def _resolved(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    reference = value.get("$ref")
    if reference is None:
        return value
    found: dict[str, Any] = schema["$defs"][reference.rpartition("/")[2]]
    return found


def _first_sentence(about: dict[str, Any]) -> str:
    text: str = about.get("description", "")
    return text.partition(". ")[0].partition("\n")[0]
