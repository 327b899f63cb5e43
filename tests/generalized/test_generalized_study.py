"""The typed study of generalized environments, and its trials in parts."""

import copy
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from seedbed.artifacts import read_table
from seedbed.environments.generalized.domains import DOMAINS
from seedbed.environments.generalized.samplers import Sampler
from seedbed.generalized.grid import full_grid
from seedbed.generalized.methodology import open_methodology
from seedbed.generalized.study_trials import (
    agent_of,
    configurations_of,
    environments_of,
    resolve_generalized,
    sampler_of,
    tune,
)
from seedbed.generalized.trials import TRIAL_COLUMNS, gather
from seedbed.generalized_study import GRID, VARIANTS, GeneralizedStudy, Ranges
from seedbed.layout import generalized_analysis, generalized_files
from seedbed.study_files import StudyError, as_study, load_study

ROOT = Path(__file__).parents[2]


def test_the_model_knows_the_grid_and_the_domains():
    assert len(full_grid()) == GRID
    assert {name: domain.VARIANTS for name, domain in DOMAINS.items()} == VARIANTS
    usual = Ranges().model_dump(exclude={"weights"})
    assert usual == {name: getattr(Sampler(("acrobot",)), name) for name in usual}


@pytest.mark.parametrize(
    ("name", "preset"), list(product(["generalized", "verdicts"], ["smoke", "quick", "paper"]))
)
def test_the_shipped_studies_resolve(name, preset):
    study = load_study(ROOT / f"studies/{name}.yaml", preset)
    resolved = resolve_generalized(study)
    assert as_study(resolved["study"]) == study
    for label in study.environments:
        assert len(resolved["environments"][label]["configurations"]) == study.number(label)
    if (name, preset) == ("generalized", "quick"):
        assert max(map(study.number, study.environments)) <= 40


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["algorithms", "A", "family"], "D", "algorithms.A.family"),
        (["algorithms", "A", "groth"], 1, "algorithms.A.groth: unknown key; did you mean 'growth'?"),
        (["algorithms", "A", "beside"], "Z", "algorithms.A.beside: 'Z' is not one of A"),
        (["algorithms", "A", "environments"], ["sea"], "algorithms.A.environments: 'sea' is not one of"),
        (["environments", "car", "domains"], ["taxi"], "environments.car.domains.0"),
        (["environments", "car", "domains"], ["acrobot", "acrobot"], "domains must differ"),
        (["environments", "car", "variants"], {"acrobot": "open"}, "book, nips, rllib, got 'open'"),
        (["environments", "both", "single"], True, "a single environment has one domain"),
        (["environments", "meta"], {"domains": ["acrobot"]}, "environments.meta: the results have a folder"),
        (["environments", "car", "configurations"], 4000, "environments.car.configurations"),
        (["environments", "car", "sampler"], {"noise": 1}, "environments.car.sampler.noise: unknown key"),
        (
            ["environments", "car", "sampler"],
            {"scale_low": 20},
            "scale_low is at most scale_high, got 20 and 10",
        ),
        (["environments", "car", "sampler"], {"weights": {"acrobot": 2}}, "for its domains, got acrobot"),
        (["environments", "alone", "sampler"], {"noise_high": 0}, "a single environment is not drawn"),
        (["environments", "narrow", "tuned_in"], "sea", "environments.narrow.tuned_in: 'sea' is not one of"),
        (["environments", "narrow", "tuned_in"], "fitted", "nothing is tuned in 'fitted'"),
        (["environments", "narrow", "tuned_in"], "alone", "environments.narrow: 'alone' has no mountain_car"),
        (["environments", "narrow", "beside"], "car", "'car' has other environments"),
        (
            ["environments", "narrow", "beside"],
            "fitted",
            "'fitted' has other environments, or is not tuned in",
        ),
        (["environments", "wide", "configurations"], 4, "'car' and 'wide' are tuned among different"),
        (["environments", "narrow", "most_tiles"], 4, "configurations are those of tuned_in"),
        (["algorithms", "A_exact", "environments"], ["car", "narrow"], "'wide' has no agent A_exact"),
        (["tuning"], 1, "tuning"),
        (["meta", "arms"], 6, "meta.arms: there are 5 configurations"),
        (["meta", "agent"], "B", "meta.agent: only families A begin without a range"),
        (["meta", "environment"], "sea", "meta.environment: 'sea' is not one of"),
        (["kind"], "generalised", "kind is one of training, generalized, got 'generalised'"),
    ],
)
def test_bad_studies_are_refused_with_file_and_key(small, tmp_path, path, value, said):
    document = copy.deepcopy(small)
    entry = document
    for key in path[:-1]:
        entry = entry[key]
    entry[path[-1]] = value
    file = tmp_path / "ranges.yaml"
    file.write_text(yaml.safe_dump(document | {"presets": {"quick": {}}}))
    with pytest.raises(StudyError) as error:
        load_study(file, "quick")
    assert said in str(error.value)
    assert str(file) in str(error.value)


def test_choices_of_another_environment_need_rivals(small):
    small = copy.deepcopy(small)
    del small["environments"]["narrow"]["beside"]
    with pytest.raises(StudyError, match=r"environments.narrow: name the environment beside it"):
        resolve_generalized(GeneralizedStudy.model_validate(small))


def test_the_ranges_are_the_samplers_and_stretch_the_same_draws(small):
    study = GeneralizedStudy.model_validate(small)
    assert sampler_of(study, "car") == Sampler(("mountain_car",))
    wide = sampler_of(study, "wide")
    assert wide == Sampler(("mountain_car",), 1, 0.01, 100, -100, 100)
    for a, b in zip(
        environments_of(study, "car")["test"], environments_of(study, "wide")["test"], strict=True
    ):
        assert b.noise == pytest.approx(2 * a.noise)
        assert [t.shift for t in b.transforms] == pytest.approx([10 * t.shift for t in a.transforms])
    small = copy.deepcopy(small)
    small["environments"]["both"]["sampler"] = {"weights": {"puddle_world": 3}}
    assert sampler_of(GeneralizedStudy.model_validate(small), "both").weights == (0.25, 0.75)


def test_limits_that_leave_too_little_are_refused_with_the_key(small):
    small = copy.deepcopy(small)
    del small["environments"]["narrow"]
    small["environments"]["car"] |= {"most_features": 8, "most_tiles": 40}
    with pytest.raises(StudyError, match=r"environments.car: .* configurations are within the limits"):
        resolve_generalized(GeneralizedStudy.model_validate(small | {"configurations": 500, "meta": None}))


def test_a_study_needs_a_distribution_and_two_agents_in_it(small):
    only = {"alone": small["environments"]["alone"]}
    study = GeneralizedStudy.model_validate(
        small | {"environments": only, "algorithms": {name: {"family": name} for name in "ABC"}, "meta": None}
    )
    with pytest.raises(StudyError, match="each is single or a variation"):
        resolve_generalized(study)
    agents = {"A": {"family": "A"}, "A_exact": {"family": "A", "growth": 0, "beside": "A"}}
    with pytest.raises(ValueError, match="two agents are compared"):
        GeneralizedStudy.model_validate(small | {"algorithms": agents})


def test_trials_hang_on_nothing_that_only_words_and_tables_use(small):
    study = GeneralizedStudy.model_validate(small)
    other = copy.deepcopy(small) | {"title": "x", "question": "y", "margin": 0.1, "mem_mb": 9, "meta": None}
    other["environments"]["car"] |= {"title": "a car"}
    for label in ("open", "wide", "narrow"):
        del other["environments"][label]
    other["algorithms"]["A_exact"]["environments"] = ["car"]
    other["algorithms"]["A"] |= {"title": "adaptive"}
    other = GeneralizedStudy.model_validate(other)
    assert study.plan("car") == other.plan("car")
    assert study.plan("car") != GeneralizedStudy.model_validate(small | {"steps": 1999}).plan("car")


def test_parts_share_the_configurations_out_and_give_the_same_trials(small):
    whole = GeneralizedStudy.model_validate(small)
    split = GeneralizedStudy.model_validate(small | {"configurations_per_job": 2})
    assert list(split.blocks()["car"]["all"]) == ["part-0", "part-1", "part-2"]
    parts = [tune(split, "car", number) for number in range(3)]
    found = [index for part in parts for index in part.configuration.unique()]
    assert sorted(found) == sorted(configurations_of(whole, "car"))
    pd.testing.assert_frame_equal(gather(reversed(parts)), tune(whole, "car", 0))


def test_tuning_and_test_environments_are_apart_and_a_single_one_is_both(small):
    study = GeneralizedStudy.model_validate(small)
    sets = {
        label: {purpose: [e.hash for e in some] for purpose, some in environments_of(study, label).items()}
        for label in study.environments
    }
    assert len(sets["car"]["tuning"]) == 3
    assert len(set(sets["car"]["tuning"] + sets["car"]["test"])) == 8
    assert sets["alone"]["tuning"] == sets["alone"]["test"]
    seeds = study.seeds("alone")
    assert not set(seeds["training"]) & set(seeds["evaluation"])
    assert {e.variant for e in environments_of(study, "open")["test"]} == {"open"}


@pytest.mark.slow
def test_any_chunking_gives_the_same_bytes(ran, run_study, small, tmp_path):
    project, study = ran
    run_study(tmp_path, GeneralizedStudy.model_validate(small | {"configurations_per_job": 2}))
    for name in generalized_analysis(study):
        if "costs" not in name:
            assert (tmp_path / name).read_bytes() == (project / name).read_bytes(), name


def test_the_jobs_do_what_the_methodology_does_in_one_process(ran):
    project, study = ran
    grid, sets = full_grid(), environments_of(study, "both")
    configurations = {index: grid[index] for index in configurations_of(study, "both")}
    agents = {name: agent_of(entry) for name, entry in study.algorithms_in("both").items()}
    result = open_methodology(configurations, sets["tuning"], sets["test"], agents, steps=study.steps)
    folder = project / "results/ranges"
    for name, table in (("tuning", result.tuning), ("test", result.test)):
        found = read_table(folder / f"{name}.parquet", TRIAL_COLUMNS)
        found = found[found.label == "both"].drop(columns="label").reset_index(drop=True)
        pd.testing.assert_frame_equal(found, table)
    compared = pd.read_parquet(folder / "statistics/comparisons.parquet")
    compared = compared[compared.label == "both"].reset_index(drop=True)
    exact = [
        "configuration_x",
        "mean_x",
        "difference",
        "p_student",
        "wins",
        "losses",
        "p_sign",
        "p_equivalence",
    ]
    pd.testing.assert_frame_equal(compared[exact], result.comparisons[exact])


def test_everything_that_is_listed_is_made(ran):
    project, study = ran
    assert [name for name in generalized_files(study) if not (project / name).is_file()] == []


def test_the_exact_range_in_a_single_environment_is_the_wide_one(ran):
    project, _ = ran
    tuning = pd.read_parquet(project / "results/ranges/tuning.parquet")
    alone = tuning[tuning.label == "alone"].set_index(["configuration", "seed"])
    b, c = (alone.loc[alone.agent == name, "score"].sort_index() for name in ("B", "C"))
    assert b.equals(c)
    assert alone.environment.nunique() == 1
    assert alone.position.nunique() == 3


def test_picks_bear_the_test_scores_of_what_was_chosen(ran):
    project, study = ran
    folder = project / "results/ranges"
    picks = pd.read_parquet(folder / "statistics/picks.parquet")
    test = pd.read_parquet(folder / "test.parquet")
    assert len(picks) == sum(len(study.algorithms_in(label)) for label in study.environments) * 4
    row = picks[(picks.label == "car") & (picks.agent == "B") & (picks.reading == "score")].iloc[0]
    trials = test[(test.label == "car") & (test.agent == "B") & (test.configuration == row.configuration)]
    assert row.n == 5
    assert row.test_mean == pytest.approx(trials.score.mean())
    assert row["median"] == np.median(trials.score)
    assert row.without_episode == (trials.episodes == 0).sum()
    chosen = full_grid()[row.configuration]
    assert (row.alpha, row.tilings, row.layout) == (chosen.alpha, chosen.tilings, chosen.layout)


def test_choices_of_another_environment_meet_those_made_here(ran):
    project, study = ran
    folder = project / "results/ranges"
    assert study.blocks()["narrow"] == {"all": {}}
    assert environments_of(study, "narrow") == environments_of(study, "wide")
    read = {name: pd.read_parquet(folder / f"{name}.parquet") for name in ("tuning", "test")}
    assert not {"narrow", "fitted"} & set(read["tuning"].label)
    picks = {
        label: pd.read_parquet(folder / label / "all/test/picks.parquet") for label in study.environments
    }
    pd.testing.assert_frame_equal(picks["fitted"], picks["alone"])
    assert set(picks["narrow"].agent) == {"A", "B", "C"}, "A_exact has no choice in narrow"
    table = pd.read_parquet(folder / "statistics/carried.parquet").set_index(["label", "agent"])
    assert set(table.index.get_level_values("label")) == {"narrow", "fitted"}
    test = read["test"].set_index(["label", "agent", "configuration"])
    for (label, agent), row in table.iterrows():
        x = test.loc[label, agent, row.configuration_x].sort_values("position").score.to_numpy()
        y = test.loc[row.rival, agent, row.configuration_y].sort_values("position").score.to_numpy()
        assert row.difference == pytest.approx((x - y).mean())
        assert (row.wins, row.losses) == ((x > y).sum(), (x < y).sum())
        assert row.home_mean == test.loc[row.origin, agent, row.configuration_x].score.mean()
        if agent != "B" and row.configuration_x == row.configuration_y:
            assert row.ties == row.n, "the same configuration without a range of its own: the same trials"


def test_the_range_of_b_is_part_of_what_is_carried(ran):
    project, _ = ran
    test = pd.read_parquet(project / "results/ranges/test.parquet")

    def range_of(label):
        rows = test[(test.label == label) & (test.agent == "B")]
        return set(map(tuple, rows[["low_0", "high_0", "low_1", "high_1"]].to_numpy()))

    assert range_of("narrow") == range_of("car") != range_of("wide")
    assert range_of("fitted") == range_of("alone")


def test_the_tuning_bias_is_the_chosen_ones_tuning_mean_less_its_test_mean(ran):
    project, _ = ran
    folder = project / "results/ranges"
    picks = pd.read_parquet(folder / "statistics/picks.parquet")
    tuning = pd.read_parquet(folder / "tuning.parquet").set_index(["label", "agent", "configuration"])
    for row in picks[(picks.reading == "score") & picks.label.isin(["car", "both"])].itertuples():
        scores = tuning.loc[row.label, row.agent, row.configuration].score
        assert row.tuning_bias == pytest.approx(scores.mean() - row.test_mean)
        assert row.tuning_bias_low < row.tuning_bias < row.tuning_bias_high


def test_the_series_are_the_unit_of_the_meta_table(ran):
    project, _ = ran
    trials = pd.read_parquet(project / "results/ranges/meta/trials.parquet")
    table = pd.read_parquet(project / "results/ranges/statistics/meta.parquet").set_index("agent")
    means = trials.groupby(["agent", "meta_trial"]).score.mean()
    assert set(table.n) == {3}
    assert set(table.index) == {"forgets", "keeps_ranges", "chooses"}
    for agent in table.index:
        assert table["mean"][agent] == pytest.approx(means[agent].mean())
    difference = means["chooses"] - means["forgets"]
    assert table.difference["chooses"] == pytest.approx(difference.mean())
    assert table.wins["chooses"] == (difference > 0).sum()
    assert np.isnan(table.difference["forgets"])
