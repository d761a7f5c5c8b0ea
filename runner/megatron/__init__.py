"""The training process on the GPUs: imports the standard library, torch and megatron.core, nothing else."""
