"""The formats that results are written in. To add one: write its module, add it to the table."""

from perfdb.export import csv, json, markdown, parquet, pytorch
from perfdb.export.base import ExportFormat

FORMATS: dict[str, ExportFormat] = {
    csv.NAME: csv,
    json.NAME: json,
    parquet.NAME: parquet,
    markdown.NAME: markdown,
    pytorch.NAME: pytorch,
}
