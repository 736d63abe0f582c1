"""Makes lakes with DuckDB, and asks it about them, in a process of its own: some statements crash DuckDB 1.5.

python -m tests.corpus.making FOLDER STEPS SEED...
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from .comparison import Answer, LakeFile, Question, duckdb_answers, questions
from .grammar import FOLDER, Writer


@dataclass(frozen=True)
class MadeLake:
    """A lake of a seed, the statements that made it, and what DuckDB answers about it."""

    seed: int
    lake: LakeFile
    statements: list[str]
    asked: list[Question]
    answers: list[Answer]


def make(seed: int, steps: int, folder: Path) -> MadeLake:
    folder.mkdir()
    kind = "duckdb" if seed % 20 == 9 else "sqlite"
    lake = LakeFile(
        f"{kind}:{folder}/catalog.{kind}", f"lake{seed}", data_path=f"{folder}/data/", encrypted=seed % 5 == 2
    )
    done = []
    with lake.connect() as connection:
        for written in Writer(seed).write(steps):
            statement = written.replace(FOLDER, str(folder))
            try:
                connection.execute(statement).fetchall()
                done.append(f"{statement};")
            except duckdb.FatalException as error:  # DuckDB goes no further, and the lake is as it was
                done.append(f"{statement}; -- DuckDB ends: {_first_line(error)}")
                break
            except duckdb.Error as error:
                done.append(f"{statement}; -- fails: {_first_line(error)}")
    with lake.connect() as connection:
        asked = questions(connection, lake, most_ranges=1 + seed % 2)
        return MadeLake(seed, lake, done, asked, duckdb_answers(connection, asked))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def make_all(seeds: Sequence[int], steps: int, folder: Path) -> list[MadeLake]:
    """The lakes of some seeds. One whose making ends DuckDB's process is left out."""
    made: list[MadeLake] = []
    left = list(seeds)
    while left:
        done = subprocess.run(
            [sys.executable, "-m", "tests.corpus", str(folder), str(steps), *map(str, left)],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        if done.returncode > 0:
            raise RuntimeError(f"seeds {left}:\n{done.stderr}")
        finished = [seed for seed in left if _answers_file(folder, seed).exists()]
        made += [pickle.loads(_answers_file(folder, seed).read_bytes()) for seed in finished]
        left = left[len(finished) + 1 :]  # the next one crashed
    return made


def make_here(folder: Path, steps: int, seeds: Sequence[int]) -> None:
    """Makes lakes in this process, and leaves each, as it is made, in a file."""
    for seed in seeds:
        made = pickle.dumps(make(seed, steps, folder / str(seed)))
        unfinished = folder / f"{seed}.unfinished"
        unfinished.write_bytes(made)
        unfinished.rename(_answers_file(folder, seed))


def _answers_file(folder: Path, seed: int) -> Path:
    return folder / f"{seed}.pickle"
