"""The training process on the GPUs; imports only the standard library, torch and megatron."""
