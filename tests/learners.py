"""What tests of several learners are made of."""

import torch


class Quiet:
    """A recorder that looks at points of its own and remembers what it was told."""

    def __init__(self, *points):
        self.points, self.evaluated, self.steps, self.logged = points, [], 0, []

    def step(self, step):
        self.steps += step.reward.shape[1]

    def due(self, steps):
        return steps in self.points

    def evaluate(self, steps, policy):
        self.evaluated.append((steps, policy))

    def log(self, steps, **scalars):
        self.logged.append((steps, scalars))


def ordinary(layers, row, activation):
    """One seed's perceptron as a torch.nn.Sequential."""
    modules = []
    for weight, bias in layers:
        linear = torch.nn.Linear(*weight.shape[1:])
        linear.weight = torch.nn.Parameter(weight[row].detach().T.clone())
        linear.bias = torch.nn.Parameter(bias[row, 0].detach().clone())
        modules += [linear, activation()]
    return torch.nn.Sequential(*modules[:-1])
