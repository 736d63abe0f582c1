"""The past of a dbt project in the lake: commit messages, snapshot lineage, consumed changes, rollback, time travel."""
