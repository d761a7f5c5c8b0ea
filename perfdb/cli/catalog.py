"""`perfdb systems` and `perfdb models`: what the catalogue holds, and which system this is."""

import dataclasses

import click

from perfdb import units
from perfdb.cli import options
from perfdb.cli.options import json_option, print_json, print_table, wide_option


@click.group(
    invoke_without_command=True,
    epilog=options.examples("perfdb systems", "perfdb systems detect --json"),
)
@wide_option
@json_option
@click.pass_context
def systems(context: click.Context, /, as_json: bool) -> None:
    """List the systems with their GPUs and dense peaks."""
    if context.invoked_subcommand:
        return
    from perfdb import catalog

    entries = list(catalog.systems().values())
    if as_json:
        print_json([entry.model_dump(mode="json") for entry in entries])
        return
    rows = []
    for entry in entries:
        peaks = [entry.peaks.get(precision) for precision in ("bf16", "fp8", "fp4")]
        printed = [units.number(peak.tflops if peak else None) for peak in peaks]
        size = entry.gpus_per_node, entry.nvlink_domain, units.number(entry.memory_gb)
        rows.append((entry.name, entry.gpu, *size, *printed))
    columns = ("System", "GPU", "GPUs/node", "NVLink domain", "Memory (GB)", "BF16", "FP8", "FP4")
    title, spare = "Systems (peaks: dense TFLOP/s per GPU)", ("NVLink domain", "GPUs/node")
    print_table(title, columns, rows, spare)


@systems.command(epilog=options.examples("perfdb systems detect"))
@json_option
def detect(as_json: bool) -> None:
    """Show which system this machine is.

    perfdb does not guess: a GPU that is not in the catalog matches no system.
    """
    from perfdb import hardware

    found = hardware.detect()
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        click.echo(f"{found.system or 'no system in the catalog'}: {found.reason}")


@click.command(epilog=options.examples("perfdb models --wide", "perfdb models --json"))
@wide_option
@json_option
def models(as_json: bool) -> None:
    """List the models with their shapes and training FLOPs per token."""
    from perfdb import catalog
    from perfdb.flops import LISTED_AT, flops_per_token

    entries = list(catalog.models().values())
    if as_json:
        print_json([entry.model_dump(mode="json") for entry in entries])
        return
    rows = []
    for it in entries:
        per_token = flops_per_token(it, LISTED_AT)
        gflop = units.significant(per_token / 1e9 if per_token else None)
        experts = f"{it.moe_top_k} of {it.num_experts}" if it.num_experts else None
        heads = it.num_attention_heads, it.num_query_groups
        shape = it.num_layers, it.hidden_size, it.ffn_hidden_size, *heads, experts
        rows.append((it.name, it.family, *shape, gflop, it.source))
    columns = ("Model", "Family", "Layers", "Hidden", "FFN", "Heads", "KV heads", "Experts",
               "GFLOP/token", "Source")  # fmt: skip
    title = f"Models (FLOPs at sequence length {LISTED_AT:,}, causal attention)"
    print_table(title, columns, rows, ("Source", "KV heads", "Heads", "FFN", "Hidden", "Layers"))
