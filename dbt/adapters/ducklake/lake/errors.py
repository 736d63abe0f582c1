"""The exceptions of a lake, one class for each way in which a caller can respond.

* LakeError
  + CatalogError
  + NotFoundError
    - ExpiredError
  + AlreadyExistsError
  + SchemaChangeError
  + ConstraintError
  + ConflictError
    - BusyError
  + CommitUnknownError
  + UnsupportedError
  + ReadOnlyError
  + OptionError
  + StatementError, in `spark.sql.tokens`

Every message names the thing, what was found, what was expected, and the next step. A statement or commit that fails
has changed nothing, unless it fails with a CommitUnknownError.
"""


class LakeError(Exception):
    """The base of all errors. Catch it to report any failure of a lake to a user.

    It is raised itself where a caller can do nothing but change the call, for example for a wrong argument.
    """


class CatalogError(LakeError):
    """The catalog cannot be opened or holds a lake of another version.

    Catch it when opening a lake. Correct the catalog string or the settings, or start the database server.
    """


class NotFoundError(LakeError):
    """A lake, schema, table, view, column or snapshot does not exist.

    Catch it where a thing may be absent. Create it, or continue without it.
    """


class ExpiredError(NotFoundError):
    """Changes are asked for whose snapshots have been expired.

    Catch it when reading changes incrementally. Read the whole table once instead.
    """


class AlreadyExistsError(LakeError):
    """The name of a new schema, table, view, macro or column is taken.

    Catch it when creating things that may exist. Use the existing one, or replace it.
    """


class SchemaChangeError(LakeError):
    """The rules of schema evolution forbid a table definition, or rows do not fit the columns of the table.

    Catch it when applying a new definition. Recreate the table, or add another column and fill it.
    """


class ConstraintError(LakeError):
    """Rows break a rule for the table's rows, such as NOT NULL.

    Catch it when writing. Correct the rows, or relax the rule.
    """


class ConflictError(LakeError):
    """A concurrent snapshot conflicts with the transaction. Nothing was changed.

    Catch it on commit. Run the whole transaction again on the new state; `Retry.on_conflict` does that.
    """


class BusyError(ConflictError):
    """Other writers committed first in every attempt. Nothing was changed.

    Catch it on commit. Do not retry at once: raise `retry.max_count`, or run fewer writers at the same time.
    """


class CommitUnknownError(LakeError):
    """The connection broke during COMMIT, and it could not be found out whether the commit took place.

    Catch it on commit. Do not repeat the transaction, which may have been committed: run `statement` in the catalog
    database first. It returns a row if it was committed.
    """

    def __init__(self, message: str, statement: str) -> None:
        super().__init__(message)
        self.statement = statement


class UnsupportedError(LakeError):
    """The lake uses something that this version or Spark cannot read or write.

    Catch it when a lake is shared with other engines. Use the other engine for this table.
    """


class ReadOnlyError(LakeError):
    """A lake that was opened read-only cannot be changed.

    Catch it when staging changes. Open the lake with `read_only` set to false.
    """


class OptionError(LakeError):
    """An option does not exist, does not take the value, or is not set.

    Catch it when setting options. The message lists the valid names or values.
    """
