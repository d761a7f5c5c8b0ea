"""The formats that results are written in. To add one: write its module, add it to the table."""

from perfdb.export import parquet, pytorch
from perfdb.export.base import ExportFormat
from perfdb.export.text import csv, json, markdown

__all__ = ["FORMATS", "csv", "json", "markdown", "parquet", "pytorch"]

FORMATS: dict[str, ExportFormat] = {
    csv.NAME: csv,
    json.NAME: json,
    parquet.NAME: parquet,
    markdown.NAME: markdown,
    pytorch.NAME: pytorch,
}
