"""The engine: a lake on Spark. It knows no dbt.

Floors, from the top; each imports only from those below it (import-linter checks):

    session.py                      LakeSession: a statement in, a result out
    transactions.py, results.py     the thread's transactions; what a statement returns
    commands/                       what each statement does
    change/                         row-level changes: insert, delete, update, merge, overwrite, rollback
    write/                          DataFrames to data files
    read/                           names in a query to DataFrames
    engine/   sql/                  the SparkSession;   the text of statements and queries

Below all of them is `lake`, the format.
"""
