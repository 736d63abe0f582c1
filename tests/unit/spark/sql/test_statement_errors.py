"""Refused statements: the error names the place and a way out, and no other exception is raised."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.ducklake.spark.sql.statements import parse
from dbt.adapters.ducklake.spark.sql.tokens import StatementError, split_statements

from .helpers import message_of, refuses


@refuses(
    ("create schema s location '/x'", "CREATE SCHEMA s: LOCATION at 1:17 is not supported: the lake chooses"),
    ("create schema s managed location '/x'", "the lake chooses"),
    ("create schema s with dbproperties (a = 'b')", "a DuckLake schema has no properties"),
    ("create table t (a int) location '/x'", "the lake chooses where files go"),
    ("create table t (a int) using delta", "USING delta at 1:30 is not supported"),
    ("create table t (a int) clustered by (a) into 4 buckets", "CLUSTERED BY"),
    ("create table t (a int) cluster by (a)", "PARTITIONED BY (bucket(n, column)) or SORTED BY"),
    ("create table t (a int) stored as orc", "Parquet"),
    ("create table t (a int) comment 'x' comment 'y'", "COMMENT at 1:36 is there twice"),
    (
        "create table t (a int primary key)",
        "PRIMARY KEY at 1:23 is not supported: DuckLake knows no constraint",
    ),
    ("create table t (a int, unique (a))", "UNIQUE"),
    ("create table t (a int, constraint c check (a > 1))", "CHECK at 1:24 is not supported"),
    ("create table t (a int references u (b))", "REFERENCES"),
    ("create table t (a int, foreign key (a) references u (b))", "FOREIGN KEY"),
    ("create table t (a int generated always as (1))", "GENERATED of column a"),
    (
        "create table t",
        "expected a list of columns, or AS and a query, found the end of the statement at 1:15",
    ),
    ("create table t as", "expected a query"),
    ("create table t (a int) as 1", "expected a query, found 1"),
    ("create or replace table if not exists t (a int)", "exclude each other"),
    ("create or replace table t like u", "Drop the old one first"),
    ("create temporary table t (a int)", "TEMPORARY at"),
    ("create external table t (a int)", "EXTERNAL at"),
    ("create materialized view v as select 1", "expected SCHEMA, TABLE, VIEW"),
    ("create or replace function if not exists f() return 1", "CREATE FUNCTION f: OR REPLACE and IF NOT EXISTS"),
    ("create function f(a) return 1", "column a"),
    ("create function f(a int not null) return 1", "CREATE FUNCTION f: expected ), found not"),
    ("create function f() returns table (a int) return select 1", "RETURNS TABLE at 1:29 is not supported"),
    ("create function f() returns int return", "expected a body, found the end"),
    ("drop function s.f(int)", "DROP FUNCTION s.f: expected the end of the statement"),
    ("alter schema s set dbproperties (a = 'b')", "ALTER SCHEMA at"),
    ("alter table t add partition (a = 1)", "ALTER TABLE t: ADD PARTITION at 1:19 is not supported"),
    ("alter table t add if not exists partition (a = 1)", "ADD PARTITION"),
    ("alter table t drop partition (a = 1)", "DROP PARTITION"),
    ("alter table t drop if exists partition (a = 1)", "DROP PARTITION"),
    ("alter table t partition (a = 1) rename to partition (a = 2)", "expected ADD, DROP"),
    ("alter table t set location '/x'", "LOCATION"),
    ("alter table t set serde 'x'", "SERDE"),
    ("alter table t set x", "expected PARTITIONED BY, SORTED BY or TBLPROPERTIES, found x"),
    ("alter table t replace columns (a int)", "REPLACE COLUMNS"),
    ("alter table t add constraint c primary key (a)", "PRIMARY KEY"),
    ("alter table t add primary key (a)", "PRIMARY KEY"),
    ("alter table t drop constraint c", "CONSTRAINT"),
    ("alter table t alter column a frob", "expected TYPE, SET, DROP NOT NULL"),
    ("alter table t alter column a type int using b", "expected the end of the statement, found using"),
    ("insert overwrite directory '/x' select 1", "DIRECTORY"),
    ("insert overwrite local directory '/x' select 1", "LOCAL"),
    ("insert overwrite t partition (a = 1) if not exists select 1", "IF NOT EXISTS"),
    ("insert into t (a) by name select 1 as a", "exclude each other"),
    ("insert into t", "INSERT INTO t: expected a query, found the end of the statement at 1:14"),
    ("insert t select 1", "expected INTO or OVERWRITE, found t"),
    ('insert into "t" select 1', 'expected a table (names are quoted with backquotes), found "t"'),
    ("from u insert into t select a insert into v select b", "write INSERT INTO ... SELECT ... FROM"),
    ("with x as (select 1) from x insert into t select *", "write INSERT INTO"),
    ("update t set a = u.a from u", "Write MERGE INTO"),
    ("update t set a where b", "expected =, found where"),
    ("update t set a = where b", "expected a value, found where"),
    ("delete from t using u", "MERGE INTO"),
    ("delete from t where", "expected a condition"),
    ("truncate table t partition (a = 1)", "write DELETE FROM"),
    ("merge into t using u using (id) when matched then delete", "write ON target.column"),
    ("merge into t using u on true", "expected WHEN"),
    ("merge into t using u on true when matched then insert *", "UPDATE or DELETE, what WHEN MATCHED can do"),
    ("merge into t using u on true when not matched then delete", "INSERT, what WHEN NOT MATCHED can do"),
    ("merge into t using u on true when not matched by source then update set *", "List the columns"),
    (
        "merge into t using u on true when matched then delete when matched then update set *",
        "would never act",
    ),
    (
        "merge into t using u on true when not matched then insert (a, b) values (1)",
        "2 columns and gives 1 values",
    ),
    ("comment on column a is 'x'", "COMMENT ON COLUMN table.column"),
    ("comment on table t is", "expected a comment or NULL"),
    ("describe t partition (a = 1)", "Query the table"),
    ("show table extended in s", "LIKE and a pattern"),
    ("use a.b.c", "too many parts"),
    ("begin select 1", "expected the end of the statement, found select at 1:7"),
    ("call f(a =>)", "expected an argument, found )"),
    ("drop table a.", "expected a name, continued after the dot, found the end"),
    ("drop table ``", "that is not empty"),
    ("drop table a b", "DROP TABLE a: expected the end of the statement, found b at 1:14"),
    ("select 1; select 2", "a second statement follows the ; at 1:9"),
    ("drop table\n  `a", "the ` at 2:3 is never closed"),
    ("select 'abc", "the ' at 1:8 is never closed"),
    ("select 1 /* x", "the /* at 1:10 is never closed"),
    ("", "The statement is empty"),
    (" -- only words", "The statement is empty"),
)
def test_an_error_names_the_place_and_a_way_out(sql: str, message: str) -> None:
    assert message in message_of(sql)


VOCABULARY = """
    create drop alter table view schema insert into overwrite update delete from merge using on when not
    matched by source target then set values select with as and comment is null default add column columns
    rename to type first after if exists or replace partitioned sorted partition tblproperties constraint
    primary key check describe show extended call use begin catalog max recursion level like case end in
    directory change unset reset struct<a: array< map< > decimal ( ) , . = => * [ ] ; 'x' 1 a b.c `d` int
"""
WORDS = VOCABULARY.split()
LONG_STATEMENTS = split_statements("""
    create or replace table s . t (
        a int not null default 1 comment 'x' , b struct< c : int > , values array< map< int , string >>
    ) using ducklake partitioned by ( year ( a ) , bucket ( 8 , b ) ) sorted by ( a desc nulls last )
        tblproperties ( k = 'v' ) as with x as ( select 1 ) select 2 ;
    create view if not exists v ( a comment 'x' ) comment 'y' as select 1 ;
    create global temp view v as select 1 ;
    alter table s . t add columns if not exists ( a . b int default 1 after c , d int first ) ;
    alter table t change column a b decimal ( 1 , 1 ) comment 'x' first ;
    alter table t drop column if exists ( a , b ) ;
    alter table t set sorted by ( a ) ;
    alter table t unset tblproperties if exists ( a ) ;
    with recursive r ( n ) max recursion level 5 as ( select 1 )
        insert overwrite table t partition ( a = 1 , b ) ( c ) select 1 ;
    insert into t by name replace where a = 1 select 1 ;
    merge with schema evolution into t as x using ( select 1 ) as y on x . a = y . a
        when matched and case when a then b end then update set a = 1 , b = 2
        when not matched by target then insert ( a , b ) values ( 1 , 2 )
        when not matched by source then delete ;
    update t as x set a = b : : map< int , int > , c = 1 where d ;
    delete from t as x where a ;
    comment on column t . a is 'x' ;
    describe table extended t a . b ;
    show table extended in s like 'x' ;
    show tblproperties t ( 'a' ) ;
    call a . b ( c => array ( 1 , - 2 ) , [ 1 ] ) ;
    set catalog x
""")


def assert_parsed_or_refused(sql: str) -> None:
    """Fails if parsing raises anything but a StatementError."""
    with contextlib.suppress(StatementError):
        parse(sql)


@pytest.mark.parametrize("sql", LONG_STATEMENTS, ids=[sql[:40] for sql in LONG_STATEMENTS])
def test_a_statement_with_words_missing_is_a_statement_or_a_statement_error(sql: str) -> None:
    words = sql.split()
    parse(sql)
    for at in range(len(words)):
        assert_parsed_or_refused(" ".join(words[:at]))
        assert_parsed_or_refused(" ".join(words[:at] + words[at + 1 :]))
        assert_parsed_or_refused(" ".join([*words[:at], words[at], *words[at:]]))


@settings(max_examples=300)
@given(st.sampled_from([word for word in WORDS if word.isalpha()]), st.lists(st.sampled_from(WORDS), max_size=14))
def test_any_words_are_a_statement_or_a_statement_error(first: str, rest: list[str]) -> None:
    assert_parsed_or_refused(" ".join([first, *rest]))
