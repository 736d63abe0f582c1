"""What maintenance does with the catalog and the driver's file system alone: plans of compaction, expiry, clean-up.

Nothing here reads the rows of a data file or needs Spark. `compaction` plans which files become one. `expiry` takes
snapshots out of the catalog and schedules the files that only they need for deletion. `cleanup` deletes scheduled
files, `orphans` those that the catalog never knew. Only these two delete files, and both ask `data_folder` and
`known_files` first. `analysis` completes the statistics of data files.
"""
