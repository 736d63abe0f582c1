"""What maintenance does with the catalog and the driver's file system alone.

Nothing here needs Spark or reads a row. `compaction` chooses the files that are merged or rewritten, `health` measures
what tables need. `expiry` takes snapshots out of the catalog and schedules the files that only they need for deletion.
`cleanup` deletes scheduled files, `orphans` those that the catalog never knew. Only these two delete files, and both
ask `data_folder` and `known_files` first. `analysis` completes the statistics of data files.
"""
