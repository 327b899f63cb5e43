"""Masked categorical distributions against torch's own, and exact small cases."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seedbed.algorithms.sampling import inverse_cdf, log_probability_and_entropy, mask_logits


def logits_and_mask(shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(shape, generator=generator, dtype=dtype) * 3
    mask = torch.rand(shape, generator=generator) < 0.4
    mask[..., 2] = True
    return logits, mask


def test_masked_actions_have_no_logit_and_allowed_ones_keep_theirs():
    logits, mask = logits_and_mask((4, 7, 9))
    masked = mask_logits(logits, mask)
    assert torch.equal(masked[mask], logits[mask])
    assert (masked[~mask] == -torch.inf).all()
    assert mask_logits(logits, None) is logits


def test_inverse_cdf_takes_the_action_whose_interval_holds_the_number():
    probabilities = torch.tensor([0.25, 0.0, 0.5, 0.25])
    uniforms = torch.tensor([0.0, 0.2499, 0.25, 0.7499, 0.75, 0.9999])
    assert inverse_cdf(probabilities.expand(6, 4), uniforms).tolist() == [0, 0, 2, 2, 3, 3]


@given(st.integers(0, 2**32 - 1), st.sampled_from([torch.float32, torch.float64]))
def test_a_forbidden_action_is_never_drawn(seed, dtype):
    logits, mask = logits_and_mask((64, 11), seed, dtype)
    generator = np.random.default_rng(seed)
    extreme = [0.0, np.nextafter(0, 1), 1 - 2**-24, np.nextafter(1, 0)]
    uniforms = torch.from_numpy(np.concatenate([extreme, generator.random(60)]))
    action = inverse_cdf(torch.softmax(mask_logits(logits, mask), -1), uniforms)
    assert mask.gather(-1, action.unsqueeze(-1)).all()


def test_drawn_frequencies_are_the_probabilities():
    logits, mask = logits_and_mask((6,))
    probabilities = torch.softmax(mask_logits(logits, mask), -1)
    grid = (torch.arange(100_000) + 0.5) / 100_000
    action = inverse_cdf(probabilities.expand(100_000, 6), grid)
    frequencies = torch.bincount(action, minlength=6) / 100_000
    torch.testing.assert_close(frequencies, probabilities, atol=2e-5, rtol=0)


@pytest.mark.parametrize("masked", [False, True])
def test_log_probability_and_entropy_are_those_of_a_categorical(masked):
    logits, mask = logits_and_mask((5, 8, 9), dtype=torch.float64)
    reference = torch.distributions.Categorical(
        logits=logits.masked_fill(~mask, -1e300) if masked else logits, validate_args=False
    )
    action = reference.sample()
    log_probability, entropy = log_probability_and_entropy(
        mask_logits(logits, mask if masked else None), action
    )
    torch.testing.assert_close(log_probability, reference.log_prob(action), atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(entropy, reference.entropy(), atol=1e-12, rtol=1e-12)


def test_their_gradients_are_right():
    logits, _ = logits_and_mask((3, 4, 6), dtype=torch.float64)
    action = torch.randint(0, 6, (3, 4), generator=torch.Generator().manual_seed(1))
    torch.autograd.gradcheck(lambda x: log_probability_and_entropy(x, action), logits.requires_grad_())


def test_forbidden_actions_have_no_gradient_and_change_none():
    logits, mask = logits_and_mask((3, 4, 6), dtype=torch.float64)
    mask[..., 5] = False
    action = torch.full((3, 4), 2)
    slopes = []
    for scores, allowed in ((logits, mask), (logits[..., :5], mask[..., :5])):
        leaf = scores.clone().requires_grad_()
        log_probability, entropy = log_probability_and_entropy(mask_logits(leaf, allowed), action)
        slopes += torch.autograd.grad((log_probability + 100 * entropy).sum(), leaf)
    assert torch.isfinite(slopes[0]).all()
    assert (slopes[0][~mask] == 0).all()
    torch.testing.assert_close(slopes[0][..., :5], slopes[1], atol=1e-12, rtol=1e-12)


def test_one_allowed_action_is_certain():
    logits = torch.randn(2, 3, 4)
    mask = torch.zeros(2, 3, 4, dtype=torch.bool)
    mask[..., 1] = True
    log_probability, entropy = log_probability_and_entropy(
        mask_logits(logits, mask), torch.ones(2, 3, dtype=torch.int64)
    )
    assert (log_probability == 0).all()
    assert (entropy == 0).all()
