"""The formats that results are written in. To add one: write its `render`, add it to the table."""

from perfdb.export import pytorch
from perfdb.export.formats import ExportFormat, csv, json, markdown, parquet

__all__ = ["FORMATS", "csv", "json", "markdown", "parquet", "pytorch"]

FORMATS: dict[str, ExportFormat] = {
    one.NAME: one for one in (csv, json, parquet, markdown, ExportFormat("pytorch", pytorch.render))
}
