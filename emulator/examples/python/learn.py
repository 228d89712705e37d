#!/usr/bin/env python3
"""Learns which waiting task to start first, with volary.Env. It takes seconds and needs no machine-learning library.

The policy starts the task with the highest score, a weighted sum of the logarithms of its estimate and of its wait. The
cross-entropy method finds the weights: each round samples weights around the mean of the best of the last round. The
policy should learn to prefer short tasks.

    python3 learn.py      # needs pip install 'volary[gym]'
"""

import numpy as np
import volary

NODES, SLOTS = 4, 16
EXPERIMENT = {
    "title": "Which task first?",
    "seed": 1,
    "cluster": {"nodes": NODES},
    "workload": {"synthetic": {"jobs": 200, "tasks": 1, "interarrival": {"exponential": {"mean": "320ms"}}}},
    "service": {"demand": {"exponential": {"mean": "1s"}}, "estimate": "exact"},
    "network": {"one_way": "1ms"},
}


def scored(weights):
    """The policy with these weights."""

    def choose(seen, mask):
        launches = mask[1:].reshape(SLOTS, NODES).astype(bool)
        scores = weights @ np.log1p([seen["estimate"], seen["wait"]])
        slot = np.argmax(np.where(launches.any(axis=1), scores, -np.inf))
        return 1 + slot * NODES + np.argmax(launches[slot])

    return choose


def at_random(rng):
    """The policy that starts any task on any free node."""
    return lambda seen, mask: rng.choice(np.flatnonzero(mask[1:]) + 1)


def total(env, choose, seed):
    """The reward of an episode."""
    (seen, info), reward, ended = env.reset(seed=seed), 0.0, False
    while not ended:
        seen, more, ended, _, info = env.step(choose(seen, info["action_mask"]))
        reward += more
    return reward


def search(env, rng, rounds=5, draws=8, best=3):
    """The weights that the cross-entropy method finds. All weights of a round are tried on the same episode."""
    mean, spread = np.zeros(2), np.ones(2)
    for seed in range(rounds):
        drawn = rng.normal(mean, spread, (draws, 2))
        rewards = [total(env, scored(weights), seed) for weights in drawn]
        kept = drawn[np.argsort(rewards)[-best:]]
        mean, spread = kept.mean(axis=0), kept.std(axis=0) + 0.1
    return mean


def main():
    rng = np.random.default_rng(1)
    env = volary.Env(EXPERIMENT, nodes=NODES, slots=SLOTS)
    weights = search(env, rng)
    print("weights of estimate and wait:", weights.round(2))
    tests = range(1000, 1006)
    for name, choose in ("learnt", scored(weights)), ("random", at_random(rng)):
        print(f"{name}: {-np.mean([total(env, choose, seed) for seed in tests]) / 200:.3f} s of wait a task")
    env.close()


if __name__ == "__main__":
    main()
