"""The steps of a secret evaluation as targets of the workflow."""

import json

import pytest

from seedbed.artifacts import SeedbedError
from seedbed.generalized.isolation import isolation

try:
    isolation()
except SeedbedError as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.mark.slow
def test_a_contest_from_seal_to_verification(checkout):
    contest, agent = checkout.folder / "contest", checkout.folder / "agent"
    (contest / "sealed").mkdir(parents=True)
    request = "sampler: {domains: [mountain_car]}\ntuning: 1\ntest: 2\nplan: {steps: 60, draws: 100}\n"
    (contest / "sealed/contest.yaml").write_text(request)
    agent.mkdir()
    content = {"command": ["sh", "-c", "while read -r line; do echo 2; done"]}
    (agent / "agent.json").write_text(json.dumps(content))
    checkout.configure("secret: {folder: contest, agents: [agent]}")
    assert not any(job.startswith("secret") for job in checkout.planned())  # by name only
    for target in ("secret_evaluate", "secret_reveal", "secret_verify"):
        run = checkout.snakemake(target)
        assert run.returncode == 0, run.stdout
    published = {name: (contest / f"public/{name}.json").read_bytes() for name in ("commitment", "results")}
    assert not checkout.planned("secret_reveal") & {"secret_seal", "secret_evaluate"}
    changed = published["results"].replace(b"-60.0", b"-59.0", 1)
    assert changed != published["results"]
    (contest / "public/results.json").write_bytes(changed)
    (checkout.folder / "results/secret/verified").unlink()
    assert checkout.snakemake("secret_verify").returncode != 0
    assert (contest / "public/commitment.json").read_bytes() == published["commitment"]
