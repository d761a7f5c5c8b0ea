"""initial

A schema change is three things in one commit: perfdb/db/tables.py, this file, and a test.
A column that rows already lack is added with a default or as nullable; data is moved, not dropped.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:

    op.create_table(
        "ingest_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column(
            "action", sa.Text(), nullable=False, comment="new | revised | rejected | unattributed"
        ),
        sa.Column("line", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column(
            "stated_reason",
            sa.Text(),
            nullable=True,
            comment="why somebody withdrew it, as --reason states",
        ),
        sa.Column("perfdb_version", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False, comment="of the other columns"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingest_log")),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column(
            "family", sa.Text(), nullable=True, comment="NULL: a name on a page, not in the catalog"
        ),
        sa.Column(
            "specification", sa.JSON(), nullable=False, comment="the catalog's entry; {} if none"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint("name", name=op.f("uq_models_name")),
    )
    op.create_table(
        "releases",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("framework", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=True, comment="NULL: unattributed"),
        sa.Column("container", sa.Text(), nullable=True),
        sa.Column("container_digest", sa.Text(), nullable=True),
        sa.Column(
            "audited_version",
            sa.Integer(),
            nullable=True,
            comment="of the audit that saw its results as they are; NULL: none has",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_releases")),
        sa.UniqueConstraint("key", name=op.f("uq_releases_key")),
    )
    op.create_table(
        "sources",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False, comment="where it was when it was read"),
        sa.Column("parser", sa.Text(), nullable=False),
        sa.Column("parser_version", sa.Integer(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("ingested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "source_url",
            sa.Text(),
            nullable=True,
            comment="of a page's original; NULL: the page does not say",
        ),
        sa.Column(
            "published_on",
            sa.Date(),
            nullable=True,
            comment="of a page; NULL: the page does not say",
        ),
        sa.Column(
            "content", sa.LargeBinary(), nullable=False, comment="the bytes, zstd-compressed"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
        sa.UniqueConstraint(
            "sha256",
            "path",
            "parser",
            "parser_version",
            name=op.f("uq_sources_sha256_path_parser_parser_version"),
        ),
    )
    op.create_index(op.f("ix_sources_path"), "sources", ["path"], unique=False)
    op.create_table(
        "systems",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("specification", sa.JSON(), nullable=False, comment="the catalog's entry"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_systems")),
        sa.UniqueConstraint("name", name=op.f("uq_systems_name")),
    )
    op.create_table(
        "cases",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("workload_key", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("system_id", sa.Integer(), nullable=False),
        sa.Column("framework", sa.Text(), nullable=False),
        sa.Column(
            "qualifiers", sa.Text(), server_default="", nullable=False, comment="joined by ', '"
        ),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("precision", sa.Text(), nullable=True),
        sa.Column("num_gpus", sa.Integer(), nullable=False),
        sa.Column("global_batch_size", sa.Integer(), nullable=False),
        sa.Column("sequence_length", sa.Integer(), nullable=False),
        sa.Column("micro_batch_size", sa.Integer(), nullable=True),
        sa.Column("local_batch_size", sa.Integer(), nullable=True),
        sa.Column("tensor_parallel", sa.Integer(), nullable=True),
        sa.Column("pipeline_parallel", sa.Integer(), nullable=True),
        sa.Column("context_parallel", sa.Integer(), nullable=True),
        sa.Column("expert_parallel", sa.Integer(), nullable=True),
        sa.Column("expert_tensor_parallel", sa.Integer(), nullable=True),
        sa.Column("virtual_pipeline", sa.Integer(), nullable=True),
        sa.Column("fsdp_enabled", sa.Boolean(), nullable=True),
        sa.Column("fsdp_size", sa.Integer(), nullable=True),
        sa.Column("sequence_parallel", sa.Boolean(), nullable=True),
        sa.Column(
            "kernels", sa.Text(), server_default="", nullable=False, comment="joined by ', '"
        ),
        sa.Column("variant", sa.Text(), nullable=True),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name=op.f("fk_cases_model_id_models"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["system_id"],
            ["systems.id"],
            name=op.f("fk_cases_system_id_systems"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cases")),
        sa.UniqueConstraint("key", name=op.f("uq_cases_key")),
    )
    op.create_index(op.f("ix_cases_workload_key"), "cases", ["workload_key"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("case_id", sa.Integer(), nullable=False),
        sa.Column("release_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column(
            "recipe", sa.Text(), nullable=True, comment="NULL: read from a log, which has none"
        ),
        sa.Column(
            "kind",
            sa.Text(),
            server_default="benchmark",
            nullable=False,
            comment="benchmark | profile | checkpoint: only a benchmark has figures",
        ),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column(
            "started_at", sa.DateTime(timezone=True), nullable=True, comment="NULL: read from a log"
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("warmup_steps", sa.Integer(), nullable=False),
        sa.Column("measured_steps", sa.Integer(), nullable=False),
        sa.Column("environment", sa.JSON(), nullable=False),
        sa.Column("command", sa.JSON(), nullable=False),
        sa.Column(
            "summary",
            sa.JSON(),
            nullable=True,
            comment="what the worker wrote at its end; NULL: nothing",
        ),
        sa.Column(
            "content_hash", sa.Text(), nullable=False, comment="of every file it was read from"
        ),
        sa.Column(
            "withdrawn", sa.Text(), nullable=True, comment="why it does not count; NULL: it does"
        ),
        sa.Column(
            "stamp",
            sa.Text(),
            nullable=True,
            comment="of its files' sizes and times, to know them unread",
        ),
        sa.ForeignKeyConstraint(
            ["case_id"], ["cases.id"], name=op.f("fk_runs_case_id_cases"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["release_id"],
            ["releases.id"],
            name=op.f("fk_runs_release_id_releases"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["source_id"],
            ["sources.id"],
            name=op.f("fk_runs_source_id_sources"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("run_id", name=op.f("uq_runs_run_id")),
    )
    op.create_table(
        "results",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column(
            "key", sa.Text(), nullable=False, comment="identity: case, release, origin, run or page"
        ),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("superseded", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column(
            "superseded_at", sa.DateTime(timezone=True), nullable=True, comment="NULL: current"
        ),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("case_id", sa.Integer(), nullable=False),
        sa.Column("release_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("source_line", sa.Integer(), nullable=True),
        sa.Column(
            "gradient_accumulation",
            sa.Integer(),
            nullable=True,
            comment="as the row or the run states it",
        ),
        sa.Column(
            "data_parallel", sa.Integer(), nullable=True, comment="as the row or the run states it"
        ),
        sa.Column("step_time_s", sa.Double(), nullable=True),
        sa.Column("step_time_mean_s", sa.Double(), nullable=True),
        sa.Column("step_time_stdev_s", sa.Double(), nullable=True),
        sa.Column("step_time_p10_s", sa.Double(), nullable=True),
        sa.Column("step_time_p90_s", sa.Double(), nullable=True),
        sa.Column("step_time_last_s", sa.Double(), nullable=True),
        sa.Column("tokens_per_sec_per_gpu", sa.Double(), nullable=True),
        sa.Column(
            "tokens_per_sec", sa.Double(), nullable=True, comment="of all GPUs together, as printed"
        ),
        sa.Column("model_tflops_per_sec_per_gpu", sa.Double(), nullable=True),
        sa.Column("mfu", sa.Double(), nullable=True),
        sa.Column(
            "peak_tflops", sa.Double(), nullable=True, comment="the peak that mfu was computed with"
        ),
        sa.Column(
            "peak_memory_bytes",
            sa.BigInteger(),
            nullable=True,
            comment="the most of all steps of the run",
        ),
        sa.Column("flops_convention", sa.Text(), nullable=True),
        sa.Column(
            "formula_version",
            sa.Integer(),
            nullable=True,
            comment="NULL: the figures are as printed",
        ),
        sa.Column("window", sa.Text(), nullable=True),
        sa.Column("num_steps", sa.Integer(), nullable=True),
        sa.Column(
            "num_means",
            sa.Integer(),
            nullable=True,
            comment="of how many means they are; NULL: of single steps",
        ),
        sa.Column("origin", sa.Text(), nullable=False, comment="measured | published"),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column(
            "withheld",
            sa.Text(),
            nullable=True,
            comment="why there are no figures; NULL: nothing is withheld",
        ),
        sa.Column("notes", sa.JSON(), nullable=False, comment="codes with parameters"),
        sa.Column(
            "raw", sa.JSON(), nullable=False, comment="the text of each cell, by the column's title"
        ),
        sa.Column(
            "printed", sa.JSON(), nullable=False, comment="the visible text of each cell, by field"
        ),
        sa.Column("extras", sa.JSON(), nullable=False, comment="columns without a field"),
        sa.Column(
            "emitted", sa.JSON(), nullable=False, comment="figures that the program printed itself"
        ),
        sa.Column(
            "stated",
            sa.JSON(),
            nullable=False,
            comment="the options that it was read with; {}: none",
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["case_id"], ["cases.id"], name=op.f("fk_results_case_id_cases"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["release_id"],
            ["releases.id"],
            name=op.f("fk_results_release_id_releases"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_results_run_id_runs"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["source_id"],
            ["sources.id"],
            name=op.f("fk_results_source_id_sources"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_results")),
        sa.UniqueConstraint("key", "revision", name=op.f("uq_results_key_revision")),
    )
    op.create_index(
        "ix_results_case_id_release_id", "results", ["case_id", "release_id"], unique=False
    )
    op.create_index(op.f("ix_results_release_id"), "results", ["release_id"], unique=False)
    op.create_index(op.f("ix_results_run_id"), "results", ["run_id"], unique=False)
    op.create_table(
        "run_files",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False, comment="the path inside the run directory"),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_run_files_run_id_runs"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["source_id"],
            ["sources.id"],
            name=op.f("fk_run_files_source_id_sources"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run_id", "name", name=op.f("pk_run_files")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "steps",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("step_time_s", sa.Double(), nullable=False),
        sa.Column("step_time_min_s", sa.Double(), nullable=True),
        sa.Column("loss", sa.Double(), nullable=True),
        sa.Column("grad_norm", sa.Double(), nullable=True),
        sa.Column("tokens", sa.BigInteger(), nullable=True),
        sa.Column("peak_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("skipped", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column(
            "tokens_per_sec_per_gpu",
            sa.Double(),
            nullable=True,
            comment="as the program printed it",
        ),
        sa.Column(
            "model_tflops_per_sec_per_gpu",
            sa.Double(),
            nullable=True,
            comment="as the program printed it",
        ),
        sa.Column("source_line", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_steps_run_id_runs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "step", name=op.f("pk_steps")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "findings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("result_id", sa.Integer(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("expected", sa.Text(), nullable=True),
        sa.Column("found", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("suggestion", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["result_id"],
            ["results.id"],
            name=op.f("fk_findings_result_id_results"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_findings")),
    )
    op.create_index(op.f("ix_findings_result_id"), "findings", ["result_id"], unique=False)


def downgrade() -> None:

    op.drop_index(op.f("ix_findings_result_id"), table_name="findings")
    op.drop_table("findings")
    op.drop_table("steps")
    op.drop_table("run_files")
    op.drop_index(op.f("ix_results_run_id"), table_name="results")
    op.drop_index(op.f("ix_results_release_id"), table_name="results")
    op.drop_index("ix_results_case_id_release_id", table_name="results")
    op.drop_table("results")
    op.drop_table("runs")
    op.drop_index(op.f("ix_cases_workload_key"), table_name="cases")
    op.drop_table("cases")
    op.drop_table("systems")
    op.drop_index(op.f("ix_sources_path"), table_name="sources")
    op.drop_table("sources")
    op.drop_table("releases")
    op.drop_table("models")
    op.drop_table("ingest_log")
