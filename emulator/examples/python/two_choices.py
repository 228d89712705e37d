#!/usr/bin/env python3
"""Power of two choices: each task goes to the less loaded of two random nodes."""

import volary


@volary.policy
def two_choices(task, cluster):
    return min(cluster.sample(2), key=lambda node: node.load, default=None)
