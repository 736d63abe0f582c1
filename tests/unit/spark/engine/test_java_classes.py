"""The jar of the classes in Java."""

from __future__ import annotations

import hashlib
import zipfile

from dbt.adapters.ducklake.spark.engine.java_classes import JAR


def test_the_jar_is_built_from_its_sources() -> None:
    sources = sorted(JAR.parent.rglob("*.java"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    with zipfile.ZipFile(JAR) as jar:
        manifest = jar.read("META-INF/MANIFEST.MF").decode().replace("\r\n ", "")
        classes = {name.rsplit("/", 1)[1] for name in jar.namelist() if name.endswith(".class")}
    assert f"Sources-SHA256: {digest}" in manifest, "run `make jar`"
    assert {f"{path.stem}.class" for path in sources} <= classes
