"""The SparkSession, its Java runtime, and its error messages.

`spark_session` starts a SparkSession when it is first needed, or uses one that the caller provides. It works the same
for a local session, a cluster and Spark Connect. `java` finds a Java runtime and `jvm` starts it,
`connect_requirements` checks what Spark Connect needs, `progress` tells how far jobs are, `errors` shortens messages.
`parquet_encryption` lets Spark read and write encrypted files. `java_classes` has what of this is in Java.

Imports only `lake.errors` and `lake.encryption`.
"""
