"""Studies and configuration: bad input is refused before anything runs, in words that name file and key."""

import copy
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seedbed.study import block_name
from seedbed.study_files import StudyError, load_config, load_studies, load_study

ROOT = Path(__file__).parents[2]
GOOD = {
    "name": "small",
    "title": "A small study",
    "question": "Which is better?",
    "environments": {"coin": {"environment": "CartPole"}},
    "algorithms": {
        "random": {"algorithm": "random", "role": "baseline"},
        "ppo": {"algorithm": "ppo", "budget": 1000, "arguments": {"gamma": 0.9}},
    },
    "seeds": "0-3",
    "pilot_seeds": [100],
    "evaluation": {"curve": {"every": 500, "episodes": 5}, "test": {"episodes": 10}},
    "statistics": {"baseline": "random", "primary": {"coin": "return"}},
    "presets": {"quick": {}, "paper": {"seeds": "0-19", "algorithms": {"ppo": {"budget": 5000}}}},
}


@pytest.fixture
def study(tmp_path):
    """Write a changed copy of the good study and load it."""

    def load(preset="quick", **changes):
        document = copy.deepcopy(GOOD)
        for path, value in changes.items():
            *parents, last = path.split("__")
            place = document
            for part in parents:
                place = place[part]
            place[last] = value
        (tmp_path / "small.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        return load_study(tmp_path / "small.yaml", preset)

    return load


def test_preset_lies_over_the_study(study):
    assert study().seeds == [0, 1, 2, 3]
    paper = study("paper")
    assert paper.seeds == list(range(20))
    assert paper.algorithms["ppo"].budget == 5000
    assert paper.algorithms["ppo"].arguments == {"gamma": 0.9}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"sedes": "0-3"}, r"sedes: unknown key; did you mean 'seeds'\?"),
        ({"algorithms__ppo__bugdet": 3}, r"algorithms\.ppo\.bugdet: unknown key; did you mean 'budget'"),
        ({"seeds": [0, 1, 1]}, r"seeds: seeds \[1\] appear more than once"),
        ({"seeds": ["0-3", 2]}, r"seeds \[2\] appear more than once"),
        ({"seeds": [-1]}, r"seeds lie in"),
        ({"seeds": [2**32]}, r"seeds lie in"),
        ({"seeds": []}, r"seeds: List should have at least 1"),
        ({"seeds": "3-0"}, r"runs backwards"),
        ({"seeds": ["a"]}, r"neither a seed nor a range"),
        ({"seeds": [True]}, r"neither a seed nor a range"),
        ({"pilot_seeds": [3, 100]}, r"seeds \[3\] are pilot_seeds too"),
        ({"algorithms__ppo__algorithm": "pop"}, r"There is no algorithm 'pop'. Use one of .*ppo"),
        ({"algorithms__ppo__algorithm": "no_such.module:X"}, r"'no_such.module' .* cannot be found"),
        ({"environments__coin__environment": "Cart"}, r"There is no environment 'Cart'"),
        (
            {"algorithms__ppo__budget": -5},
            r"algorithms\.ppo\.budget: .*greater than or equal to 0 \(got -5\)",
        ),
        (
            {"algorithms__ppo__environments": ["moon"]},
            r"algorithms.ppo: environment 'moon' is not one of coin",
        ),
        ({"algorithms__ppo__arguments_in": {"moon": {}}}, r"environment 'moon' is not one of coin"),
        ({"statistics__baseline": "nobody"}, r"statistics.baseline: algorithm 'nobody'"),
        ({"statistics__primary": {}}, r"names no metric for the environments \['coin'\]"),
        ({"statistics__primary": {"coin": "return", "moon": "x"}}, r"environment 'moon'"),
        ({"metrics": ["elo"]}, r"There is no metric set 'elo'"),
        (
            {"evaluation__test": {"episodes": 2, "reset_seeds": [1]}},
            r"2 episodes need as many reset_seeds, got 1",
        ),
        (
            {
                "evaluation__test": {"episodes": 3, "reset_seeds": "5-7"},
                "evaluation__curve": {"every": 5, "episodes": 2, "reset_seeds": [7, 8]},
            },
            r"share \[7\]",
        ),
        ({"algorithms": {"../up": {"algorithm": "random"}}}, r"'\.\./up' cannot be a label"),
        ({"environments": {"a/b": {"environment": "CartPole"}}}, r"'a/b' cannot be a label"),
        ({"algorithms": {"$x_{1}": {"algorithm": "random"}}}, r"cannot be a label"),
        ({"algorithms": {"<b>": {"algorithm": "random"}}}, r"cannot be a label"),
        ({"name": "other"}, r"name is 'other', but the file's name says 'small'"),
    ],
)
def test_bad_studies_are_refused_with_file_key_and_reason(study, changes, message):
    with pytest.raises(StudyError, match=message) as error:
        study(**changes)
    assert "small.yaml" in str(error.value)


def test_missing_study_preset_and_broken_yaml(study, tmp_path):
    study()
    with pytest.raises(StudyError, match=r"has no preset 'huge'; it has quick, paper"):
        load_study(tmp_path / "small.yaml", "huge")
    with pytest.raises(StudyError, match=r"nothing\.yaml does not exist; .* has small\.yaml"):
        load_study(tmp_path / "nothing.yaml", "quick")
    for text in ("a: [", "- a list", "\0"):
        (tmp_path / "broken.yaml").write_text(text)
        with pytest.raises(StudyError, match=r"broken\.yaml"):
            load_study(tmp_path / "broken.yaml", "quick")


def test_names_of_folders_beside_the_studies_are_refused(study, tmp_path):
    study(name="small")
    (tmp_path / "logs.yaml").write_text(
        (tmp_path / "small.yaml").read_text().replace("name: small", "name: logs")
    )
    with pytest.raises(StudyError, match="a study cannot be called 'logs'"):
        load_study(tmp_path / "logs.yaml", "quick")


def test_titles_may_hold_any_text(study):
    title = r"<script> 50% & $x_1$ \LaTeX"
    assert study(title=title).title == title


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(1, 9))
def test_blocks_are_contiguous_and_cover_each_seed_once(seeds, size):
    document = {key: value for key, value in GOOD.items() if key != "presets"} | {"seeds": sorted(seeds)}
    from seedbed.study import Study

    blocks = Study.model_validate(document).blocks("coin", "ppo", size)
    assert sorted(seed for block in blocks.values() for seed in block) == sorted(seeds)
    for name, block in blocks.items():
        assert block == list(range(block[0], block[0] + len(block)))
        assert len(block) <= size
        assert name == block_name(block)


def test_an_environment_may_run_some_of_the_seeds(study):
    some = study(environments__coin={"environment": "CartPole", "seeds": "1-2"})
    assert some.seeds_in("coin") == [1, 2]
    assert some.blocks("coin", "ppo", 4) == {"seeds-1-2": [1, 2]}
    assert study().seeds_in("coin") == [0, 1, 2, 3]
    with pytest.raises(StudyError, match=r"environments\.coin\.seeds: \[9\] are not among the study's seeds"):
        study(environments__coin={"environment": "CartPole", "seeds": [1, 9]})


def test_unknown_configuration_key_is_named():
    with pytest.raises(StudyError, match=r"seed_per_job: unknown key; did you mean 'seeds_per_job'"):
        load_config({"studies": ["interview"], "seed_per_job": 4})
    with pytest.raises(StudyError, match=r"statistics.alpha: .*less than 1 \(got 5\)"):
        load_config({"studies": ["interview"], "statistics": {"alpha": 5}})


def test_shipped_configuration_and_studies_are_valid():
    config = load_config(yaml.safe_load((ROOT / "config.yaml").read_text()))
    for path in (ROOT / "studies").glob("*.yaml"):
        for preset in ("smoke", "quick", "paper"):
            load_study(path, preset)
    assert set(config.studies) <= {path.stem for path in (ROOT / "studies").glob("*.yaml")}


def test_companions_follow_their_study_once(tmp_path):
    generalized = yaml.safe_load((ROOT / "studies/generalized.yaml").read_text())
    for name, companions in {"one": ["two", "three"], "two": ["three", "one"], "three": []}.items():
        document = generalized | {"name": name, "companions": companions, "presets": {"quick": {}}}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(document))
    for asked, order in {"one": ["one", "two", "three"], "three": ["three"]}.items():
        config, studies = load_studies(load_config({"studies": [asked]}), tmp_path)
        assert config.studies == list(studies) == order
    with pytest.raises(StudyError, match=r"four\.yaml does not exist"):
        load_studies(load_config({"studies": ["three", "four"]}), tmp_path)
