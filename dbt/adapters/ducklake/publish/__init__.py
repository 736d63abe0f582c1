"""`publish: run`: what a dbt command changes is one snapshot."""
