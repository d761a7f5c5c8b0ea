"""The flags of Megatron-Bridge's performance script that a runner needs, as they are documented."""

import argparse


def whole_or_none(text: str) -> int | None:
    return None if text == "None" else int(text)


def switch(text: str) -> bool:
    return {"true": True, "false": False}[text]


def parse_cli_args() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-m", "--model_family_name", required=True)
    parser.add_argument("-mr", "--model_recipe_name", required=True)
    parser.add_argument("--task", choices=("pretrain", "sft", "peft"), default="pretrain")
    parser.add_argument("-cv", "--config_variant")
    gpus = ("h100", "b200", "b300", "gb200", "gb300", "vr200", "r100")
    parser.add_argument("-g", "--gpu", required=True, choices=gpus)
    types = ("bf16", "fp8_cs", "fp8_mx", "fp8_sc", "nvfp4")
    parser.add_argument("-c", "--compute_dtype", default="bf16", choices=types)
    for short, long in (
        ("-ng", "num_gpus"), ("-gn", "gpus_per_node"), ("-ms", "max_steps"),
        ("-gb", "global_batch_size"), ("-mb", "micro_batch_size"), ("-sl", "seq_length"),
        ("-tp", "tensor_model_parallel_size"), ("-pp", "pipeline_model_parallel_size"),
        ("-cp", "context_parallel_size"), ("-vp", "virtual_pipeline_model_parallel_size"),
        ("-ep", "expert_model_parallel_size"), ("-et", "expert_tensor_parallel_size"),
    ):  # fmt: skip
        parser.add_argument(short, f"--{long}", type=whole_or_none)
    parser.add_argument("--use_megatron_fsdp", type=switch)
    parser.add_argument("--moe_a2a_overlap", type=switch)
    parser.add_argument("--moe_flex_dispatcher_backend", choices=("deepep", "hybridep", "None"))
    parser.add_argument("--cuda_graph_impl", choices=("none", "local", "transformer_engine"))
    scopes = ("full_iteration", "attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba")
    parser.add_argument("--cuda_graph_scope", choices=scopes)
    return parser
