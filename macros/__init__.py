"""The macros of dbt-ducklake, installed as dbt.include.ducklake."""

import os

PACKAGE_PATH = os.path.dirname(__file__)
