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

MOST_RANGES = 2


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
    lake = LakeFile(f"{kind}:{folder}/catalog.{kind}", f"lake{seed}", data_path=f"{folder}/data/")
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
        asked = questions(connection, lake, most_ranges=MOST_RANGES)
        return MadeLake(seed, lake, done, asked, duckdb_answers(connection, asked))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def make_all(seeds: Sequence[int], steps: int, folder: Path) -> list[MadeLake]:
    """The lakes of some seeds. One whose making ends DuckDB's process is left out."""
    made = _in_another_process(seeds, steps, folder / "all")
    if made is not None:
        return made
    single = [_in_another_process([seed], steps, folder / f"only{seed}") for seed in seeds]
    return [lake for found in single if found is not None for lake in found]


def _in_another_process(seeds: Sequence[int], steps: int, folder: Path) -> list[MadeLake] | None:
    """The lakes, or None if the process crashed. Other errors are raised."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.corpus.making", str(folder), str(steps), *map(str, seeds)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    if done.returncode < 0:
        return None
    if done.returncode > 0:
        raise RuntimeError(f"seeds {list(seeds)}:\n{done.stderr}")
    made: list[MadeLake] = pickle.loads((folder / "made").read_bytes())
    return made


def main(folder: str, steps: str, *seeds: str) -> None:
    made = [make(int(seed), int(steps), Path(folder) / seed) for seed in seeds]
    (Path(folder) / "made").write_bytes(pickle.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
