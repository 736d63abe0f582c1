"""DuckLake for Spark, and for dbt on Spark."""

from .spark.session import LakeSession, Result

__all__ = ["LakeSession", "Result"]
