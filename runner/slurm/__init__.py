"""Jobs of a Slurm cluster: what they were asked, what Slurm says of them, and how they ended."""
