"""The code version must notice every change that git would commit, and nothing else."""

import os
import subprocess

import pytest

from seedbed.provenance.code import code


@pytest.fixture(autouse=True)
def _own_git(tmp_path, monkeypatch):
    """No settings of the person who runs the tests; no repository around the temporary folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")


def git(root, *arguments) -> str:
    command = ["git", "-c", "init.defaultBranch=main", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init")
    (root / "a.py").write_text("x = 1\n")
    (root / "b.bin").write_bytes(b"\0\1\2")
    (root / ".gitignore").write_text("ignored\n")
    git(root, "add", ".")
    git(root, "commit", "-m", "first")
    return root


def test_a_clean_checkout(repository):
    (repository / "ignored").write_text("anything")
    os.utime(repository / "a.py", (1, 1))
    assert code(repository) == {
        "commit": git(repository, "rev-parse", "HEAD"),
        "branch": "main",
        "tags": [],
        "dirty": False,
        "changes": [],
        "changes_sha256": None,
        "reason": None,
    }


def test_tags_and_a_detached_head(repository):
    git(repository, "tag", "v1")
    git(repository, "checkout", "--detach")
    facts = code(repository)
    assert (facts["branch"], facts["tags"], facts["dirty"]) == (None, ["v1"], False)


CHANGES = {
    "edited": lambda root: (root / "a.py").write_text("x = 2\n"),
    "edited otherwise": lambda root: (root / "a.py").write_text("x = 3\n"),
    "binary": lambda root: (root / "b.bin").write_bytes(b"\0\1\3"),
    "binary otherwise": lambda root: (root / "b.bin").write_bytes(b"\0\1\4"),
    "deleted": lambda root: (root / "a.py").unlink(),
    "untracked": lambda root: (root / "new file").write_text("1"),
    "untracked with other content": lambda root: (root / "new file").write_text("2"),
    "untracked with another name": lambda root: (root / "other\nname").write_text("1"),
    "untracked link": lambda root: (root / "new file").symlink_to("1"),
    "untracked link that leads nowhere": lambda root: (root / "new file").symlink_to("nowhere"),
    "staged": lambda root: ((root / "c.py").write_text("1"), git(root, "add", "c.py")),
    "executable": lambda root: (root / "a.py").chmod(0o755),
    "renamed": lambda root: git(root, "mv", "a.py", "z.py"),
}


def test_every_kind_of_change_has_a_hash_of_its_own(repository):
    seen = {}
    for name, change in CHANGES.items():
        git(repository, "reset", "--hard")
        git(repository, "clean", "-fd")
        change(repository)
        facts = code(repository)
        assert facts["dirty"] is True, name
        assert facts["changes"], name
        assert code(repository) == facts
        assert code(repository, hash_changes=False) == facts | {"changes_sha256": None}
        seen[name] = facts["changes_sha256"]
    assert len(set(seen.values())) == len(CHANGES)


def test_equal_changes_have_equal_hashes_whatever_a_persons_settings(repository):
    (repository / "a.py").write_text("x = 2\n")
    (repository / "new").write_text("1")
    before = code(repository)["changes_sha256"]
    for key, value in {"diff.noprefix": "true", "diff.mnemonicPrefix": "true", "color.ui": "always",
                       "diff.algorithm": "histogram", "diff.context": "9", "core.abbrev": "5",
                       "diff.external": "false", "diff.renames": "copies"}.items():  # fmt: skip
        git(repository, "config", key, value)
    assert code(repository)["changes_sha256"] == before


def test_only_the_projects_folder_counts(repository):
    (repository / "part").mkdir()
    (repository / "part" / "c.py").write_text("1")
    git(repository, "add", ".")
    git(repository, "commit", "-m", "second")
    (repository / "a.py").write_text("x = 2\n")
    (repository / "outside").write_text("1")
    assert code(repository / "part")["dirty"] is False
    (repository / "part" / "d.py").write_text("1")
    assert code(repository / "part")["changes"] == ["d.py"]


def test_a_hooks_variables_do_not_lead_to_another_repository(repository, monkeypatch):
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    assert code(repository)["dirty"] is False


def nothing_known(root) -> str:
    facts = code(root)
    assert {value for key, value in facts.items() if key != "reason"} == {None}
    return facts["reason"]


def test_without_commit_repository_tracked_files_or_git_the_reason_is_given(
    tmp_path, repository, monkeypatch
):
    plain = tmp_path / "plain"
    plain.mkdir()
    assert nothing_known(plain) == "the project is not in a git repository"
    (repository / "unpacked").mkdir()
    assert nothing_known(repository / "unpacked") == "git tracks no file in unpacked/"
    git(plain, "init")
    (plain / "a").write_text("")
    git(plain, "add", "a")
    assert nothing_known(plain) == "the repository has no commit yet"
    monkeypatch.setenv("PATH", str(plain))
    assert nothing_known(repository) == "git is not installed"
    assert "no folder" in nothing_known(tmp_path / "absent")
