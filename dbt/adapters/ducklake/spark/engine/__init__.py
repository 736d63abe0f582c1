"""The SparkSession: found or started when it is first needed, with the Java that it runs on and the errors that it raises.

Imports only `lake.errors`. Works the same for a local session, a cluster and Spark Connect.
"""
