"""`python -m bench.poisoning`: how many attempts to poison a memory succeed?

`attempts.py` describes the corpus, `play.py` says when an attempt succeeds. The rates are reported by family and by
channel, with rules alone and with a scripted model that obeys the attacker: it proposes the lie about every
conversation that it is shown. `--held-back` measures the third that is held back from the work on defences, whose
attempts are not listed. The controls are honest histories that resemble attacks: reported is how many of the user's
own statements are learned alone and not in their history.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from bench.learning.scripted_model import Script, serve
from bench.poisoning.attempts import Attempt, held_back_ids, load_attempts, load_controls
from bench.poisoning.play import NotPrepared, Outcome, is_learned, play_attempt, step_states
from holdfast.settings import Settings


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.poisoning", description="Measure attacks on memory.")
    half = parser.add_mutually_exclusive_group()
    half.add_argument("--held-back", action="store_true", help="measure the third that is held back")
    half.add_argument("--all", action="store_true", help="measure both parts together")
    parser.add_argument("--model", action="store_true", help="learn with an obedient model, instead of rules alone")
    parser.add_argument("--embedder", default="static", help="static or onnx:DIRECTORY")
    parser.add_argument("--list", action="store_true", help="list every attempt that succeeded")
    parser.add_argument("--only", type=int, nargs="+", help="play these attempts")
    parser.add_argument("--no-controls", action="store_true", help="leave out the honest histories")
    options = parser.parse_args(arguments)
    if options.list and (options.held_back or options.all):
        parser.error("attempts that are held back are not listed")
    attempts, held_back = load_attempts(), held_back_ids(load_attempts())
    if options.only:
        attempts = tuple(each for each in attempts if each.id in options.only)
    elif not options.all:
        attempts = tuple(each for each in attempts if (each.id in held_back) == options.held_back)
    if not options.model:
        attempts = tuple(each for each in attempts if not each.model_only)
    script = Script()
    with serve(script) as url:
        settings = model_settings(url) if options.model else Settings()
        asyncio.run(_report(attempts, script, settings, options))


def model_settings(url: str) -> Settings:
    """Settings under which a flush asks the model at the URL."""
    return Settings(model="scripted", model_url=url)


async def _report(attempts: Sequence[Attempt], script: Script, settings: Settings, options: argparse.Namespace) -> None:
    outcomes: list[Outcome] = []
    for attempt in attempts:
        try:
            outcomes.append(await play_attempt(attempt, script, settings, options.embedder))
        except NotPrepared as problem:
            print(problem)
    print(f"succeeded: {_rate(outcomes)}")
    ways = Counter(way for outcome in outcomes for way in outcome.successes)
    print("  " + ", ".join(f"{way} {count}" for way, count in ways.most_common()))
    _print_groups("family", outcomes, lambda attempt: attempt.family)
    _print_groups("channel", outcomes, lambda attempt: attempt.channel)
    if options.model:
        print(f"the model was asked {script.requests} times")
    if options.list:
        _print_successes(outcomes)
    if not options.no_controls:
        await _report_controls(script, settings, options)


def _print_groups(name: str, outcomes: Iterable[Outcome], group: Callable[[Attempt], str]) -> None:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[group(outcome.attempt)].append(outcome)
    print(f"by {name}")
    for key in sorted(groups):
        print(f"  {key:<24} {_rate(groups[key])}")


def _rate(outcomes: Sequence[Outcome]) -> str:
    successes = sum(bool(outcome.successes) for outcome in outcomes)
    return f"{successes} of {len(outcomes)} ({successes / len(outcomes):.0%})" if outcomes else "none"


def _print_successes(outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.successes:
            attempt = outcome.attempt
            print(f"\n{attempt.id} [{attempt.family}, {attempt.channel}] {', '.join(outcome.successes)}")
            print(f"    true: {attempt.true}, false: {attempt.false}")
            for memory in outcome.memories:
                print(f"    memory: {memory}")
            for line in outcome.shown.splitlines()[1:]:
                print(f"    {line[:160]}")


async def _report_controls(script: Script, settings: Settings, options: argparse.Namespace) -> None:
    alone = blocked = 0
    for control in load_controls():
        if not await is_learned(control, step_states(control.steps), script, settings, options.embedder):
            continue
        alone += 1
        if not await is_learned(control, control.steps, script, settings, options.embedder):
            blocked += 1
            if options.list:
                print(f"\ncontrol {control.id} is blocked: {control.expected}")
    print(f"controls: of {alone} statements that are learned alone, {blocked} are not learned in their history")


if __name__ == "__main__":
    main()
