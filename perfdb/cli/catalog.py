"""`perfdb systems` and `perfdb models`: what the catalogue holds, and which system this is."""

import dataclasses
from typing import TYPE_CHECKING

import click

from perfdb import units
from perfdb.cli.options import json_option, print_json, print_names

if TYPE_CHECKING:
    from perfdb.catalog import Model, System


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def systems(context: click.Context, /, as_json: bool) -> None:
    """List the systems, their GPUs and their dense peaks; `detect` says which this machine is."""
    if context.invoked_subcommand:
        return
    from perfdb import catalog

    entries = list(catalog.systems().values())
    if as_json:
        print_json([entry.model_dump(mode="json") for entry in entries])
        return
    columns = ("System", "GPU", "GPUs/node", "NVLink domain", "Memory (GB)", "BF16", "FP8", "FP4")
    title, spare = "Systems; peaks in dense TFLOP/s per GPU", ("NVLink domain", "GPUs/node")
    print_names(title, columns, map(_system, entries), spare)


def _system(entry: "System") -> tuple[object, ...]:
    peaks = [entry.peaks.get(precision) for precision in ("bf16", "fp8", "fp4")]
    printed = [units.number(peak.tflops if peak else None) for peak in peaks]
    memory = units.number(entry.memory_gb)
    return entry.name, entry.gpu, entry.gpus_per_node, entry.nvlink_domain, memory, *printed


@systems.command()
@json_option
def detect(as_json: bool) -> None:
    """Say which system this machine is. A GPU that no system has is not guessed at."""
    from perfdb import hardware

    found = hardware.detect()
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        click.echo(f"{found.system or 'no system of the catalogue'}: {found.reason}")


@click.command()
@json_option
def models(as_json: bool) -> None:
    """List the models, their shapes and their training FLOPs per token."""
    from perfdb import catalog
    from perfdb.flops import LISTED_AT

    entries = list(catalog.models().values())
    if as_json:
        print_json([entry.model_dump(mode="json") for entry in entries])
        return
    columns = ("Model", "Family", "Layers", "Hidden", "FFN", "Heads", "KV heads", "Experts",
               "GFLOP/token", "Source")  # fmt: skip
    title = f"Models; FLOPs at sequence length {LISTED_AT:,}, causal attention"
    spare = ("Source", "KV heads", "Heads", "FFN", "Hidden", "Layers")
    print_names(title, columns, map(_model, entries), spare)


def _model(entry: "Model") -> tuple[object, ...]:
    from perfdb.flops import LISTED_AT, flops_per_token

    per_token = flops_per_token(entry, LISTED_AT)
    experts = f"{entry.moe_top_k} of {entry.num_experts}" if entry.num_experts else None
    return (
        entry.name, entry.family, entry.num_layers, entry.hidden_size, entry.ffn_hidden_size,
        entry.num_attention_heads, entry.num_query_groups, experts,
        units.significant(per_token / 1e9 if per_token else None), entry.source,
    )  # fmt: skip
