"""The abbreviations of the field, each with its meaning: one table for glossary and tooltips."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """An abbreviation: what it is short for, and what that means."""

    short: str
    name: str
    meaning: str

    @property
    def hint(self) -> str:
        """The whole of it in one line."""
        return f"{self.name}: {self.meaning}"


TERMS: dict[str, Term] = {
    term.short: term
    for term in (
        Term("GBS", "Global batch size", "samples in one optimizer step, over all GPUs."),
        Term("MBS", "Micro batch size", "samples that one GPU takes through the model at once."),
        Term(
            "LBS",
            "Local batch size",
            "samples that one data-parallel rank takes through the model between two "
            "accumulations (AutoModel).",
        ),
        Term(
            "GA",
            "Gradient accumulation",
            "forward and backward passes before an optimizer step: GBS ÷ (MBS × DP), for "
            "AutoModel GBS ÷ (LBS × DP).",
        ),
        Term("DP", "Data parallel size", "copies of the model: GPUs ÷ (TP × PP × CP)."),
        Term("TP", "Tensor parallel size", "GPUs that share each layer's matrices."),
        Term("PP", "Pipeline parallel size", "stages that the layers are cut into."),
        Term("CP", "Context parallel size", "GPUs that share the tokens of one sequence."),
        Term("EP", "Expert parallel size", "GPUs that share the experts of a layer."),
        Term("ETP", "Expert tensor parallel size", "GPUs that share each expert's matrices."),
        Term(
            "VP",
            "Virtual pipeline size",
            "model chunks in each pipeline stage. 0, 1 and – all say that there is no virtual "
            "pipeline; tables that follow a page show what it printed, the others –.",
        ),
        Term(
            "SP",
            "Sequence parallel",
            "whether the activations between tensor-parallel regions are split along the "
            "sequence: on or off, in tables of a release 1 or 0.",
        ),
        Term(
            "FSDP",
            "Fully sharded data parallel",
            "a switch or a size. A switch is on, or off for DDP (distributed data parallel); "
            "tables of a release print it as 1 or 0, as NeMo and DFM do. Of AutoModel it is the "
            "number of GPUs that share one copy of the training state.",
        ),
        Term(
            "MFU",
            "Model FLOPs utilisation",
            "model TFLOP/s/GPU ÷ the GPU's dense peak at the precision. (computed): not stated, "
            "and follows from the TFLOP/s that are.",
        ),
        Term(
            "FLOPs convention",
            "How model FLOPs are counted",
            "the name of the formula; – where none is stated. MFU and TFLOP/s by two conventions "
            "do not compare.",
        ),
        Term(
            "TFLOP/s/GPU",
            "Model TFLOP per second and GPU",
            "10¹² floating-point operations that the model's arithmetic needs, recomputation not "
            "counted.",
        ),
        Term(
            "Tokens/s/GPU",
            "Tokens per second and GPU",
            "tokens of the global batch ÷ step time ÷ GPUs. (computed): not stated, and follows "
            "from the tokens/s of all GPUs or the step time that are.",
        ),
        Term(
            "Step time",
            "Seconds of one optimizer step",
            "forward, backward, gradient reduction and update; the median over the window where it "
            "is measured, by the slowest rank in a run directory.",
        ),
        Term("p10–p90", "10th to 90th percentile", "the spread of the step times in the window."),
        Term("n", "Number of steps", "steps in the window that the figures are taken over."),
        Term("SFT", "Supervised fine-tuning", "training of all weights on examples of a task."),
        Term("LoRA", "Low-rank adaptation", "fine-tuning of small added matrices only."),
        Term(
            "TE",
            "Transformer Engine",
            "NVIDIA's kernels for the layers of a transformer: norm, linear layers and attention.",
        ),
        Term(
            "DeepEP",
            "Deep expert parallelism",
            "kernels that send the tokens of a MoE layer to the GPUs of their experts, and back.",
        ),
        Term(
            "FlexAttn",
            "FlexAttention of PyTorch",
            "attention whose mask is a function in Python, compiled into one kernel.",
        ),
        Term(
            "TorchSDPA",
            "Scaled dot-product attention of PyTorch",
            "attention by the fastest kernel that PyTorch has for the inputs.",
        ),
        Term(
            "Packed sequence length",
            "Several samples in one sequence",
            "the sequence length where several short samples of fine-tuning are put into one "
            "sequence, so that none is padded; tokens/s count the whole packed sequence.",
        ),
        Term("MoE", "Mixture of experts", "layers in which each token visits a few of many MLPs."),
        Term("Precision", "Precision recipe", "number format and scaling of the matrix products."),
    )
}
