"""What each statement does. `registry.COMMANDS` maps a parsed statement to the function that carries it out.

Imports `change` and everything below it. Commands stage changes in a transaction; `show` answers from the catalog alone.
"""
