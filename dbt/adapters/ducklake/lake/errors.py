"""What can go wrong with a lake: one type for each kind of answer a caller can give."""


class LakeError(Exception):
    """Any refusal of the lake; the message names the thing, what was found, and the next step."""


class CatalogError(LakeError):
    """The catalog database can not be opened, or what is in it is no lake this version can use."""


class NotFoundError(LakeError):
    """A schema, table, view, column or snapshot that is not there."""


class ExpiredError(NotFoundError):
    """Snapshots that were expired, of which something is asked that only they knew."""


class AlreadyExistsError(LakeError):
    """A name that is taken."""


class SchemaChangeError(LakeError):
    """A change of a table's definition that the rules of schema evolution forbid."""


class ConstraintError(LakeError):
    """Rows that a NOT NULL column does not take."""


class ConflictError(LakeError):
    """Another snapshot was committed meanwhile that this transaction must not pass."""


class BusyError(ConflictError):
    """Other writers were first, as often as a commit was tried."""


class UnsupportedError(LakeError):
    """Something of the format that this version can not read or write."""


class ReadOnlyError(LakeError):
    """A change asked of a lake that was opened for reading only."""


class OptionError(LakeError):
    """An option that does not exist, or a value that it does not take."""
