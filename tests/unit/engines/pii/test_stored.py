"""Compiled patterns are kept for the next start, and a file that others could have written is not trusted."""

import os

import pytest

from app.engines.pii.scan import stored

DIGEST = bytes(range(32))


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.delenv("CACHE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sluice"


def test_what_is_kept_is_read_again_by_its_digest_only(folder):
    assert stored.read(DIGEST) is None

    stored.keep(DIGEST, b"compiled")

    assert stored.read(DIGEST) == b"compiled" and stored.read(DIGEST[::-1]) is None
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_is_not_read(folder, mode):
    stored.keep(DIGEST, b"compiled")
    (file,) = folder.iterdir()

    file.chmod(mode)

    assert stored.read(DIGEST) is None


def test_a_link_is_not_followed(folder, tmp_path):
    stored.keep(DIGEST, b"compiled")
    (file,) = folder.iterdir()
    file.rename(tmp_path / "elsewhere")

    file.symlink_to(tmp_path / "elsewhere")

    assert stored.read(DIGEST) is None


def test_a_folder_that_others_may_write_is_not_used(folder):
    folder.mkdir(parents=True)
    folder.chmod(0o777)

    stored.keep(DIGEST, b"compiled")

    assert list(folder.iterdir()) == []


def test_old_sets_of_patterns_are_thrown_away(folder):
    for number in range(8):
        stored.keep(bytes([number]) * 32, b"compiled")

    assert len(list(folder.iterdir())) == 4


def test_what_is_in_use_is_kept_however_old_it_is(folder):
    stored.keep(DIGEST, b"in use")
    for number in range(8):
        for file in folder.iterdir():
            os.utime(file, (1, file.stat().st_mtime - 60))
        assert stored.read(DIGEST) == b"in use"
        stored.keep(bytes([number]) * 32, b"compiled")

    assert stored.read(DIGEST) == b"in use"


def test_where_nothing_can_be_written_nothing_happens(monkeypatch, tmp_path):
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("")

    stored.keep(DIGEST, b"compiled")

    assert stored.read(DIGEST) is None
