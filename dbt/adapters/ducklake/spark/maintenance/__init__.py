"""Maintenance: compaction, expiry, clean-up, and what else a lake needs besides its rows.

Every operation is a function of a `MaintenanceContext` and of the procedure's arguments, by their names, and returns an
Arrow table. It works on the lake as a whole, in transactions of its own. What it computes from the catalog alone is in
`lake.maintenance`.
"""
