#!/usr/bin/env python3
"""Least loaded of three nodes, with reservations that expire: the policy of `emulator/examples/reserved`, in Python.

For each task its scheduler asks some random nodes how long their queues are, and sends it to the shortest. A node that
was asked counts the task in its queue until the task arrives or the reservation expires. Several schedulers decide at
once, over a network that may lose and duplicate messages.
"""

import volary

#: The longest wait before nodes are asked again, seconds.
LONGEST_WAIT = 300.0


class Question:
    """The latest question about a task."""

    def __init__(self):
        self.number = 0  # questions about this task so far; answers to earlier ones are ignored
        self.due = 0.0  # time at which nodes are asked again, if answers can be lost
        self.asked = []  # nodes that have not answered
        self.best = None  # the shortest queue, and its node


class ShortestOfFew(volary.Scheduler):
    messages = {
        "ask": ("datagram", ["task", "u32", "bool"]),  # task, question, whether it (and the answer) repairs a loss
        "length": ("datagram", ["task", "u32", "i32"]),  # task, question, length of the queue
    }

    avoids_unreachable = False

    def __init__(self):
        self.probes = self.parameters.get("probes", 3)
        self.timeout = self.parameters.get("probe_timeout", 1.0) if self.lossy else None
        self.questions = {}
        self.timers = {}

    def task_ready(self, task):
        question = self.questions.setdefault(task, Question())
        if question.asked and (self.timeout is None or self.now < question.due):
            return  # the timer is of an earlier question; answers or the timer of the latest one are pending
        best, question.asked, question.best = question.best, [], None
        if best:
            return self.launch(task, best[1])
        earlier, repair = question.number, question.number > 0 or task.lost
        question.number += 1
        question.asked = self.sample(self.probes)
        for node in question.asked:
            self.send(node, "ask", task, question.number, repair, repair=repair)
        if self.timeout is not None:
            wait = min(self.timeout * 2**earlier, max(self.timeout, LONGEST_WAIT))
            question.due = self.after(wait)
            self.timers[self.timer(wait)] = task

    def message_received(self, node, name, task, number, length):
        question = self.questions.get(task)
        if question is None or question.number != number or node not in question.asked:
            return  # an answer can be late, or arrive twice
        question.asked.remove(node)
        if question.best is None or length < question.best[0]:
            question.best = (length, node)
        if not question.asked:
            self.ready_again(task)

    def timer_fired(self, number):
        self.ready_again(self.timers.pop(number))

    def ready_again(self, pair):
        task = self.waiting(pair)
        if task is not None:
            self.task_ready(task)

    def task_ended(self, task, node):
        self.questions.pop(task, None)

    def node_down(self, node):
        for question in self.questions.values():
            question.asked = [asked for asked in question.asked if asked is not node]
            if question.best and question.best[1] is node:
                question.best = None
        self.node_up(node)

    def node_up(self, node):
        for task in self.all_waiting():
            question = self.questions.get(task)
            if question and not question.asked:
                self.task_ready(task)


class ReservingNode(volary.Node):
    def __init__(self):
        self.expiry = self.parameters.get("expiry", 0.1)
        self.places = {}  # time at which the reservation of each task expires

    def message_received(self, scheduler, name, task, number, repair):
        self.places = {task: until for task, until in self.places.items() if until > self.now}
        self.places.pop(task, None)
        length = self.length + len(self.places)
        self.places[task] = self.after(self.expiry)
        self.send(scheduler, "length", task, number, length, repair=repair)

    def launched(self, task):
        self.places.pop(task, None)


if __name__ == "__main__":
    volary.serve(ShortestOfFew, ReservingNode)
