"""What each statement does. `registry.COMMANDS` maps the class of a parsed statement to the function that runs it.

Imports `change` and everything below it. Commands stage changes in a transaction. `show` reads the catalog alone.
"""
