"""Which lakes of a test are replayed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from .replay import lakes_in
from .sqllogic import Runner

STATEMENTS = """
statement ok
create table lake.t as from range(20) r(i)

statement ok
delete from lake.t where i < 5
"""

FAILED_COMMIT = """
statement ok one
begin

statement ok two
begin

statement ok one
call ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)

statement ok two
call ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)

statement ok one
commit

statement error two
commit
"""


@pytest.mark.parametrize(
    ("catalog", "statements"),
    [
        ("{TEST_DIR}/it''s \"db\".db", STATEMENTS),
        ("{TEST_DIR}/lake.db", STATEMENTS + FAILED_COMMIT),
        ("sqlite:{TEST_DIR}/it''s.sqlite", STATEMENTS),
    ],
)
def test_every_lake_that_a_test_leaves_is_found_and_opens(tmp_path: Path, catalog: str, statements: str) -> None:
    attach = f"attach 'ducklake:{catalog}' as lake (data_path '{{TEST_DIR}}/data', data_inlining_row_limit 0)"
    test = tmp_path / "some.test"
    test.write_text(f"statement ok\n{attach}\n{statements}")
    course = Runner(test, tmp_path).run()
    assert (course.surprises, course.stopped) == ([], None)

    left_out: Counter[str] = Counter()
    (lake,) = lakes_in(tmp_path, left_out)
    assert not left_out
    with lake.connect() as connection:
        assert connection.execute("select count(*) from t").fetchall() == [(15,)]
